"""Training under noise. Nothing is imported here, so that `import certiseg` stays light."""

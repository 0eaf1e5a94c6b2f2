"""Models: what they are, how they are read, and how they are run."""

"""Benchmarks: ratios of speed and memory measured within one run."""

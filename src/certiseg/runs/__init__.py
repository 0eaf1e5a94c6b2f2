"""Runs: a data set certified by a model, kept in a folder that can be interrupted, resumed and analysed."""

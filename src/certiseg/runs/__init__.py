"""Runs: a data set certified by a model, kept in a folder that can be interrupted, resumed and analysed.

The unit of work is a range of draws of one image (`task`). The scheduler gives tasks to an engine - this process,
several of them (`local`), or a Ray cluster (`ray`) - and writes what comes back, so all engines give the same bytes.
"""

"""Engines: who makes the draws of a run - this process, several of them, or the workers of a Ray cluster.

The unit of work is a range of draws of one image (`work`); votes of ranges add up. `drive` gives units to an engine and
writes what comes back into the run folder, so that all engines give the same bytes.
"""

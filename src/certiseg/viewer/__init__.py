"""The viewer: a run folder as a local web page, with every certificate recomputed from stored votes on demand."""

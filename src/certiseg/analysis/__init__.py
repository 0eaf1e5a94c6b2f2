"""The paper's experiments, one file each, over a run folder; none of them calls the model."""

"""Benchmarks: ratios of speed and memory, each measured within one run. `make bench` runs them.

Every suite is a module with `measure() -> list[Figure]`; `quick` is the small version of the others for CI.
"""

SUITES = {
    "overhead": "sample + certify over the same bare forward passes; noise over a pass",
    "threat_overhead": "moving an image along each threat over a bare forward pass",
    "measure_cost": "the values of a hundred objects over a bare forward pass",
    "straightforward": "everything but the model against a straightforward pipeline: time and memory",
    "runtimes": "the best backend or memory format over plain eager torch",
    "certify_speed": "certify from stored votes against NumPy and one scipy call",
    "after_sampling": "everything after sampling against the published steps",
    "sample_memory": "peak memory as n grows",
    "scaling": "time as n, pixels and classes grow",
    "window_cost": "a large image through windows against the whole at once: time and memory",
    "early_stopping": "forward passes saved by stopping early, on CamVid",
    "tune_speed": "a grid of thresholds against one certification",
}

"""Benchmarks: ratios of speed and memory, each measured within one run. `certiseg bench` runs them.

Every suite is a module here with `measure() -> list[Figure]`; `quick` is the small version of the others for CI.
"""

SUITES = {
    "overhead": "sample + certify over the same bare forward passes; noise over a pass",
    "straightforward": "everything but the model against a straightforward pipeline: time and memory",
    "runtimes": "the best backend or memory format over plain eager torch",
    "certify_speed": "certify from stored votes against NumPy and one scipy call",
    "after_sampling": "everything after sampling against the published steps",
    "sample_memory": "peak memory as n grows",
    "scaling": "time as n, pixels and classes grow",
    "early_stopping": "forward passes saved by stopping early, on CamVid",
    "tune_speed": "a grid of thresholds against one certification",
}

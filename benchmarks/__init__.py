"""Benchmarks: ratios of speed and memory. `make bench` runs them, each several times in processes of its own.

Every suite is a module with `measure() -> list[Figure]`; `quick` is the small version of the others for CI.
"""

SUITES = {
    "overhead": "sample + certify over the same bare forward passes; noise over a pass",
    "threat_overhead": "moving an image along each threat over a bare forward pass",
    "measure_cost": "the values of a hundred objects over a bare forward pass",
    "truth_cost": "sets that hold the truth over bare forward passes, of many images and of one",
    "end_to_end": "one image to nearly what n = 1000 certifies, against the published pipeline",
    "straightforward": "everything but the model against a straightforward pipeline",
    "runtimes": "the best backend or memory format over plain eager torch",
    "certify_speed": "certify from stored votes against NumPy and one scipy call",
    "after_sampling": "everything after sampling against the published steps",
    "sample_memory": "peak memory as n grows, and against a straightforward pipeline",
    "scaling": "time as n, pixels and classes grow",
    "window_cost": "a large image through windows against the whole at once: time and memory",
    "tune_speed": "a grid of thresholds against one certification",
    "end_to_end_kept": "what stopping keeps of the pixels that n = 1000 certifies, on the image of end_to_end",
    "early_stopping": "forward passes saved by stopping early, on CamVid",
}
ONCE = ("sample_memory", "end_to_end_kept", "early_stopping")
"""Suites that count and do not time: what they give hardly scatters."""
WITH_MODEL = ("overhead", "threat_overhead", "measure_cost", "truth_cost", "end_to_end", "end_to_end_kept")
"""Suites that follow the model to another device."""

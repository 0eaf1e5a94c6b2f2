"""Truth and robustness together: label sets that hold the true class, under attack, by conformal calibration.

    calibration = cs.calibrate(model, images, labels, sigma=0.25, radius=0.169, risk=0.1, pixels=0.95)
    sets = calibration.sets(model, image)       # (H, W, C) bool
    print(calibration.claim())

settings.py     what is promised, and how pixels are scored
scores.py       how well every class of a pixel fits: sets are the classes that fit at least so well
draw.py         one noisy pass, and those of many images at once
identity.py     the model and the images that a calibration belongs to
calibration.py  thresholds from the scores of calibration images
calibrate.py    labelled images -> calibration
answer.py       the sets of one image, with the noise they were drawn from
files.py        both read again: `load_calibration`, `load_sets`
claim.py        the promise in plain words
verify.py       calibrations and sets checked by other means
evaluate.py     what is reached on labelled images, with and without attack

The method and why it holds: docs/truth.md.
"""

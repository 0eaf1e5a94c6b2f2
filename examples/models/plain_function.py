import numpy as np

import certiseg as cs


def segment(images: np.ndarray) -> np.ndarray:
    """(B, H, W, 3) floats around [0, 1] -> (B, H, W) labels. Call whatever you like in here."""
    return (images.mean(axis=-1) > 0.5).astype(np.uint8)


model = cs.Segmenter(segment, arrays="numpy", scores="labels", class_names=["dark", "bright"])
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, method="segcertify")
print(certificate.claim())

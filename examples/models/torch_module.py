import torch

import certiseg as cs

# Yours, with its trained weights: images in, scores (B, classes, h, w) out, at any resolution.
network = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, stride=4, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 3, 1)
)
model = cs.Segmenter(
    network,
    class_names=["road", "building", "sky"],
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    divisible_by=32,
)
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, method="sets")
print(certificate.claim())

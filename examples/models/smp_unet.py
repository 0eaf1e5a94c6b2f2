import segmentation_models_pytorch as smp
import torch

import certiseg as cs

network = smp.Unet("resnet34", encoder_weights=None, classes=19)
network.load_state_dict(torch.load("unet.pth", weights_only=True))
model = cs.Segmenter(
    network,
    hierarchy="cityscapes",  # its classes, in its order
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    divisible_by=32,
)
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, cs.load_hierarchy("cityscapes"))
print(certificate.claim())

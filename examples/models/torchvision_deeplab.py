from torchvision.models.segmentation import DeepLabV3_ResNet50_Weights, deeplabv3_resnet50

import certiseg as cs

weights = DeepLabV3_ResNet50_Weights.DEFAULT
model = cs.Segmenter(
    deeplabv3_resnet50(weights=weights),  # returns a dict; its `out` is taken
    class_names=weights.meta["categories"],
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    input_size=520,  # the shorter side, as in weights.transforms()
    resize="antialiased",
)
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, method="sets")
print(certificate.claim())

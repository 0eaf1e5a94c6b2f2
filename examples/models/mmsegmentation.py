from mmseg.apis import init_model

import certiseg as cs

network = init_model("segformer.py", "segformer.pth", device="cpu")
mean, std = (getattr(network.data_preprocessor, name).flatten() / 255 for name in ("mean", "std"))
model = cs.Segmenter(
    lambda images: network(images, mode="tensor"),  # the scores alone, without mmseg's own resizing
    class_names=network.dataset_meta["classes"],
    mean=mean.tolist(),
    std=std.tolist(),
    align_corners=network.align_corners,
)
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, cs.load_hierarchy("cityscapes"))
print(certificate.claim())

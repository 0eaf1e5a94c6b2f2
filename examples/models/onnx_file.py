import certiseg as cs

# Normalisation is rarely part of the file; class names are read from its metadata, if it has them.
model = cs.load_model(
    "street.onnx",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    hierarchy="camvid",
)
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, cs.load_hierarchy("camvid"))
print(certificate.claim())

import certiseg as cs

# Fixed size, bytes in, labels out: the image is resized and rounded inside the certified function.
model = cs.load_model("street.tflite", class_names=["road", "building", "tree", "sky", "car"])
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, method="sets")
print(certificate.claim())

import certiseg as cs

# A folder as save_pretrained writes it: config.json, model.safetensors, preprocessor_config.json.
model = cs.load_model("hf:segformer")
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, method="sets")
print(certificate.claim())

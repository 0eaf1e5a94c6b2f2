import certiseg as cs

# street.bin lies beside it. Models of Open Model Zoo take values 0..255, blue first.
model = cs.load_model("street.xml", std=(1 / 255, 1 / 255, 1 / 255), bgr=True, hierarchy="camvid")
votes = cs.sample(model, "street.png", sigma=0.25)
certificate = cs.certify(votes, cs.load_hierarchy("camvid"))
print(certificate.claim())

"""Certify one image: the five lines of the README."""

import certiseg as cs

votes = cs.sample(cs.load_model("compact"), "street.png", sigma=0.25, n0=10, n=100, seed=0)
cert = cs.certify(votes, cs.load_hierarchy("camvid"), method="nested", tau=0.75, alpha=0.001)
print(cert.claim(), cert.labels_at(row=200, column=100), cert.excludes("Pedestrian").mean())

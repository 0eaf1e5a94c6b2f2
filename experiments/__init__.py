"""What makes the documents of this repository; not part of the package.

results.py          make results: the runs of docs/results.md, planned in results_plan.py, written by
                    results_document.py with the sentences of findings.py
published.py        the paper's figures (published.json) beside those of a run
remedies.py         make remedies: docs/noise.md
assess.py           accuracy of stored weights, for docs/model-card.md
compact_gallery.py  docs/images/compact.png
"""

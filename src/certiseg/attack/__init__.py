"""Attacks on certificates: perturbations that are searched for, and fresh draws there that could refute a promise.

settings.py  how hard to attack
targets.py   which pixels are attacked, and which classes their certificates allow
loss.py      what the search maximises: evidence against the certified labels, through the torch model
search.py    projected gradient in an l2 ball, in expectation over the noise, with restarts
refute.py    fresh draws at x + delta, and the test that refutes
report.py    tables and the page of all attacks
sweep.py     a threat's parameter inside and beyond its range, by fresh draws; sweep_page.py tells of it
"""

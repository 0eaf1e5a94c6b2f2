"""certiseg plan agrees with the binomial distribution."""

import json

import pytest
from scipy.stats import binom, norm

from certiseg.cli import main


def plans(capsys, *arguments):
    assert main(["plan", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("size", "tau", "alpha"), [("360x480", 0.75, 0.001), ("1024x2048", 0.95, 0.01), ("1x1", 0.5, 0.5)]
)
def test_plan_states_least_n_misses_and_radius(size, tau, alpha, capsys):
    height, width = map(int, size.split("x"))
    level = alpha / (height * width)
    for plan in plans(capsys, "--size", size, "--tau", str(tau), "--alpha", str(alpha), "-n", "100", "500"):
        least = next(n for n in range(1, 2000) if tau**n <= level)
        assert plan["least_n"] == least
        needed = [k for k in range(plan["n"] + 1) if binom.sf(k - 1, plan["n"], tau) <= level]
        assert plan["critical"] == (needed[0] if needed else None)
        assert plan["misses"] == (plan["n"] - needed[0] if needed else None)
        assert plan["radius"] == pytest.approx(0.25 * norm.ppf(tau))


def test_plan_in_words_gives_grey_levels(capsys):
    assert main(["plan"]) == 0
    text = capsys.readouterr().out
    assert "least n that can certify anything: 66" in text
    assert "97 votes needed, 3 may miss" in text
    assert "42.9 grey levels" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tau", "0.4"],
        ["--tau", "1"],
        ["--alpha", "0"],
        ["--alpha", "1"],
        ["--sigma", "0"],
        ["-n", "70000"],
        ["--size", "9"],
    ],
)
def test_plan_refuses_in_one_sentence(arguments, capsys):
    try:
        code = main(["plan", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert capsys.readouterr().err.count("\n") == 1

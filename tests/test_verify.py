"""The independent checker: it agrees with certify everywhere, and names what was tampered with."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import certiseg as cs
from certiseg.archive import Archive, read_archive, write_archive
from certiseg.certify import NothingCertifiable
from certiseg.hierarchy import hierarchy_from_dict
from certiseg.models.synthetic import SyntheticSegmenter
from certiseg.verify import Verification
from tests.conftest import random_votes, tree_documents

DOCUMENT = {
    "name": "ragged",
    "classes": ["a", "b", "c", "d"],
    "levels": {1: {"ab": ["a", "b"]}, 2: {"abc": ["ab", "c"]}},
}
TREE = hierarchy_from_dict(DOCUMENT, source="ragged")
ALLOWED = [
    (method, correction)
    for method in ("segcertify", "level", "adaptive", "nested", "sets")
    for correction in ("bonferroni", "holm", "kfwer", "by")
    if method not in ("nested", "sets") or correction in ("bonferroni", "holm")
]


def certify(*arguments: Any, **options: Any) -> cs.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        return cs.certify(*arguments, **options)


def verify_saved(cert: cs.Certificate, folder: Path) -> Verification:
    cert.save(folder / "c.npz")
    return cs.verify(folder / "c.npz")


def failed(outcome: Verification) -> list[str]:
    assert not outcome.passed
    return [check.name for check in outcome.checks if not check.passed]


def repack(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    """The same certificate with something changed, in an archive whose every hash is valid."""
    stored = read_archive(path, kind="certificate", version=1)
    meta, arrays = copy.deepcopy(stored.meta), {name: array.copy() for name, array in stored.arrays.items()}
    change(meta, arrays)
    changed = path.with_name("changed.npz")
    write_archive(changed, kind="certificate", version=1, meta=meta, arrays=arrays)
    return changed


def redigest(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Make the certificate's digest of its votes valid again."""
    votes = {n.removeprefix("votes."): a for n, a in arrays.items() if n.startswith("votes.")}
    meta["votes_digest"] = cs.Votes.unpack(Archive("votes", copy.deepcopy(meta["votes"]), votes), "x").digest()


# -- it passes on everything certify makes -----------------------------------------------------------------------


@settings(max_examples=16)
@given(tree_documents(), st.integers(0, 2**32), st.sampled_from([1, 9, 30]), st.data())
def test_everything_that_certify_makes_is_verified(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], seed: int, n: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    tree = hierarchy_from_dict(document, source="random")
    size = (int(rng.integers(1, 4)), int(rng.integers(1, 5)))
    named = tree.classes if rng.random() < 0.5 else None
    votes = random_votes(seed, num_classes=tree.num_classes, n=n, size=size, classes=named)
    region = rng.random(size) < 0.6
    region[0, 0] = True
    folder = tmp_path_factory.mktemp("verify")
    for method, correction in ALLOWED:
        used = region if rng.random() < 0.5 else None
        options = {
            "tau": data.draw(st.sampled_from([0.5, 0.6, 0.75])),
            "alpha": data.draw(st.sampled_from([0.5, 0.25, 0.75, 0.05])),
            "test": data.draw(st.sampled_from(["fixed", "anytime"])),
            "k": int(rng.integers(1, (size[0] * size[1] if used is None else used.sum()) + 1)),
            "level": int(rng.integers(tree.num_levels)),
            "thresholds": sorted(rng.choice([0.0, 0.25, 1.0], int(rng.integers(0, tree.num_levels)))),
        }
        cert = certify(votes, tree, method=method, correction=correction, region=used, **options)
        outcome = verify_saved(cert, folder)
        assert outcome.passed, outcome.checks[-1]
        assert [check.name for check in outcome.checks] == [
            "file",
            "votes",
            "names",
            "settings",
            "critical",
            "vertex",
            "level",
            "set_size",
        ]


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "kfwer", "by"])
def test_exact_ties_between_tails_and_levels_are_verified(correction: str, tmp_path: Path) -> None:
    """P(Bin(n, 1/2) >= k) falls exactly on alpha / N, alpha / (N - 1), ...; floating point alone would guess."""
    for n in (2, 3, 5, 8, 20):
        for total in (1, 2, 3, 4, 6):
            for alpha in (0.5, 0.75, 0.375, 0.25, 3 * 2.0**-n, total * 2.0**-n, total * (n + 1) * 2.0**-n):
                if not 0 < alpha < 1:
                    continue
                hits = np.array([[n, n - 1, n, n - 2, max(n - 3, 0), n][:total]])
                counts = np.stack([hits, n - hits], axis=-1).astype(np.uint16)
                ranking = np.tile(np.array([0, 1], np.uint8), (1, total, 1))
                votes = cs.Votes(ranking[..., 0].copy(), np.ones((1, total)), ranking, counts, n0=1, n=n, sigma=0.25)
                cert = certify(votes, method="segcertify", tau=0.5, alpha=alpha, correction=correction, k=1)
                outcome = verify_saved(cert, tmp_path)
                assert outcome.passed, (n, total, alpha, outcome.checks[-1])


def test_evidence_exactly_on_its_bound_is_verified(tmp_path: Path) -> None:
    for n, alpha in ((1, 2 / 3), (2, 3 / 7), (3, 4 / 15), (5, 6 / 63)):
        counts = np.array([[[n, 0]]], np.uint16)
        ranking = np.array([[[0, 1]]], np.uint8)
        votes = cs.Votes(ranking[..., 0].copy(), np.ones((1, 1)), ranking, counts, n0=1, n=n, sigma=0.25)
        cert = certify(votes, method="segcertify", tau=0.5, alpha=alpha, test="anytime")
        assert verify_saved(cert, tmp_path).passed, n


@pytest.mark.parametrize("test", ["fixed", "anytime"])
def test_many_draws_are_verified(test: str, tmp_path: Path) -> None:
    votes = random_votes(5, num_classes=4, n=5000, size=(20, 20))
    for method, correction in (("nested", "holm"), ("sets", "bonferroni"), ("segcertify", "by")):
        assert verify_saved(certify(votes, TREE, method=method, correction=correction, test=test), tmp_path).passed


def test_certificates_without_a_hierarchy_or_with_nothing_certified_are_verified(tmp_path: Path) -> None:
    votes = random_votes(1, num_classes=5, n=30, size=(3, 3))
    assert verify_saved(certify(votes, method="sets", alpha=0.3), tmp_path).passed
    nothing = certify(votes, method="segcertify", alpha=1e-9)
    assert nothing.critical is None
    assert verify_saved(nothing, tmp_path).passed


# -- votes beside ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["votes.npz", "below/votes.npz", "../votes.npz"])
def test_votes_beside_the_certificate_are_found_and_checked(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    (folder / "below").mkdir(parents=True)
    votes = random_votes(2, num_classes=4, n=30, size=(3, 4))
    votes.save(folder / name)
    cert = certify(votes, TREE, alpha=0.3)
    cert.save(folder / "c.npz", votes_path=name)
    assert cs.verify(folder / "c.npz").passed
    np.testing.assert_array_equal(cs.load_certificate(folder / "c.npz").vertex, cert.vertex)
    random_votes(3, num_classes=4, n=30, size=(3, 4)).save(folder / name)
    assert failed(cs.verify(folder / "c.npz")) == ["votes"]
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    assert failed(cs.verify(folder / "c.npz")) == ["file"]
    (folder / name).unlink()
    with pytest.raises(cs.InputError, match="votes must be a file"):
        cs.verify(folder / "c.npz")


def test_votes_beside_may_hold_more_draws_than_the_certificate_used(tmp_path: Path) -> None:
    model = SyntheticSegmenter(np.random.default_rng(0).dirichlet(np.full(4, 0.3), (3, 4)))
    votes = cs.sample(model, model.image, sigma=0.25, n0=5, n=60, snapshots=(30,))
    votes.save(tmp_path / "votes.npz")
    certify(votes.first(30), TREE, alpha=0.3).save(tmp_path / "c.npz", votes_path="votes.npz")
    assert cs.verify(tmp_path / "c.npz").passed
    assert cs.verify(tmp_path / "c.npz", model=model, image=model.image).passed
    changed = repack(tmp_path / "c.npz", lambda meta, _: meta.update(votes_n=60))
    assert failed(cs.verify(changed)) == ["votes"]
    changed = repack(tmp_path / "c.npz", lambda meta, _: meta.update(votes_n=31))
    assert failed(cs.verify(changed)) == ["file"]


@pytest.mark.parametrize("name", ["/etc/votes.npz", "../../votes.npz", "below/../../votes.npz"])
def test_a_certificate_may_not_point_far_away(name: str, tmp_path: Path) -> None:
    certify(random_votes(2, num_classes=4, n=30, size=(3, 4)), TREE, alpha=0.3).save(
        tmp_path / "c.npz", votes_path=name
    )
    assert failed(cs.verify(tmp_path / "c.npz")) == ["file"]
    with pytest.raises(cs.InputError, match="`votes_path` must stay near the certificate"):
        cs.load_certificate(tmp_path / "c.npz")


# -- what was tampered with --------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    votes = random_votes(11, num_classes=4, n=40, size=(5, 6), classes=TREE.classes)
    cert = certify(votes, TREE, method="nested", tau=0.6, alpha=0.1)
    assert {-1, 0} < set(np.unique(cert.vertex))
    cert.save(tmp_path / "c.npz")
    return tmp_path / "c.npz"


def test_any_changed_byte_fails_the_file_check(saved: Path) -> None:
    original = saved.read_bytes()
    for position in range(0, len(original), 7):
        changed = bytearray(original)
        changed[position] ^= 1 << (position % 8)
        saved.write_bytes(changed)
        assert failed(cs.verify(saved)) == ["file"], position


def raise_a_count(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["votes.counts"][0, 0, 0] += 1


def move_a_vote(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    pixel = arrays["votes.counts"][0, 0]
    pixel[pixel.argmax()] -= 1
    pixel[pixel.argmin()] += 1


def raise_a_count_and_the_digest(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    from certiseg.verify import _votes_digest

    raise_a_count(meta, arrays)
    votes = {n.removeprefix("votes."): a for n, a in arrays.items() if n.startswith("votes.")}
    meta["votes_digest"] = _votes_digest(meta["votes"], votes)


def move_votes_to_certify_more(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """All votes of an abstained pixel to its candidate, every hash made valid: the vertex map gives it away."""
    row, column = np.argwhere(arrays["vertex"] == -1)[0]
    arrays["votes.counts"][row, column] = 0
    arrays["votes.counts"][row, column, arrays["votes.candidate"][row, column]] = 40
    redigest(meta, arrays)


def repeat_a_rank(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    from certiseg.verify import _votes_digest

    ranking = np.repeat(arrays["votes.candidate"][..., None], 2, axis=-1)
    arrays["votes.ranking"] = ranking
    votes = {n.removeprefix("votes."): a for n, a in arrays.items() if n.startswith("votes.")}
    meta["votes_digest"] = _votes_digest(meta["votes"], votes)


def swap_a_vertex(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    row, column = np.argwhere(arrays["vertex"] == 0)[0]
    arrays["vertex"][row, column] = 1


def certify_an_abstention(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    row, column = np.argwhere(arrays["vertex"] == -1)[0]
    arrays["vertex"][row, column] = arrays["votes.candidate"][row, column]


def change_a_level(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["level"][0, 0] = (arrays["level"][0, 0] + 1) % 3


def change_a_size(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["set_size"][0, 0] = 1


def setting(**changes: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["settings"] |= changes

    return change


def tau_with_its_radius(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    from scipy.stats import norm

    meta["settings"]["tau"] = 0.9
    meta["radius"] = 0.25 * norm.ppf(0.9)


def header(**changes: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta.update(changes)

    return change


def votes_header(**changes: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["votes"] |= changes

    return change


def stop_the_votes(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    meta["votes"]["stopped"] = True
    redigest(meta, arrays)


def other_sigma(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    meta["votes"]["sigma"] = 0.5
    redigest(meta, arrays)


def shrink_the_region(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Fewer pixels tested would need fewer votes each."""
    arrays["region"] = np.zeros((5, 6), bool)
    arrays["region"][0, 0] = True


def empty_region(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["region"] = np.zeros((5, 6), bool)


def other_classes(*names: str) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["hierarchy"]["classes"] = list(names)

    return change


def tree_levels(levels: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["hierarchy"]["levels"] = levels

    return change


def without(key: str) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for holder in (meta, arrays, meta["settings"], meta["votes"]):
            holder.pop(key, None)

    return change


TAMPERED: dict[str, tuple[Any, str]] = {
    "a raised count": (raise_a_count, "votes"),
    "a moved vote": (move_a_vote, "votes"),
    "a raised count with its digest": (raise_a_count_and_the_digest, "votes"),
    "votes moved to certify more, with every hash": (move_votes_to_certify_more, "vertex"),
    "a class ranked twice, with every hash": (repeat_a_rank, "votes"),
    "another digest": (header(votes_digest="0" * 64), "votes"),
    "a swapped vertex": (swap_a_vertex, "vertex"),
    "an abstention certified": (certify_an_abstention, "vertex"),
    "another level": (change_a_level, "level"),
    "another set size": (change_a_size, "set_size"),
    "another tau": (setting(tau=0.9), "radius"),
    "another tau with its radius": (tau_with_its_radius, "critical"),
    "tau below a half": (setting(tau=0.4), "settings"),
    "tau as text": (setting(tau="0.6"), "settings"),
    "another radius": (header(radius=1.0), "radius"),
    "a radius that is no number": (header(radius=float("nan")), "radius"),
    "a radius as text": (header(radius="large"), "settings"),
    "another alpha": (setting(alpha=1e-9), "critical"),
    "alpha of one": (setting(alpha=1.0), "settings"),
    "another critical count": (header(critical=1), "critical"),
    "no critical count": (header(critical=None), "critical"),
    "another correction": (setting(correction="holm"), "critical"),
    "a correction without proof": (setting(correction="by"), "settings"),
    "an unknown correction": (setting(correction="none"), "settings"),
    "another test": (setting(test="anytime"), "critical"),
    "an unknown test": (setting(test="sometimes"), "settings"),
    "another method": (setting(method="segcertify"), "vertex"),
    "an unknown method": (setting(method="magic"), "settings"),
    "sets without their length": (setting(method="sets"), "settings"),
    "sets that are too long": (setting(method="sets", max_set=9), "settings"),
    "a level that is not there": (setting(method="level", level=7), "settings"),
    "a level of None": (setting(method="level", level=None), "settings"),
    "adaptive without thresholds": (setting(method="adaptive"), "settings"),
    "adaptive with falling thresholds": (setting(method="adaptive", thresholds=[0.5, 0.1]), "settings"),
    "adaptive with too many thresholds": (setting(method="adaptive", thresholds=[0, 0, 0]), "settings"),
    "adaptive with thresholds of text": (setting(method="adaptive", thresholds=["a", "b"]), "settings"),
    "kfwer with k of nothing": (setting(method="segcertify", correction="kfwer", k=0), "settings"),
    "kfwer with k above the pixels": (setting(method="segcertify", correction="kfwer", k=31), "settings"),
    "votes marked as stopped": (stop_the_votes, "settings"),
    "votes quietly unmarked": (votes_header(stopped=True), "votes"),
    "another sigma in the votes": (votes_header(sigma=0.5), "votes"),
    "another sigma with its digest": (other_sigma, "radius"),
    "another n in the votes": (votes_header(n=41), "votes"),
    "n as text": (votes_header(n="40"), "votes"),
    "a region": (shrink_the_region, "critical"),
    "an empty region": (empty_region, "region"),
    "permuted classes": (other_classes("b", "a", "c", "d"), "hierarchy"),
    "too few classes": (other_classes("a", "b", "c"), "hierarchy"),
    "classes that are no names": (other_classes(1, 2, 3, 4), "hierarchy"),  # type: ignore[arg-type]
    "another tree": (tree_levels({"1": {"ab": ["a", "c"]}, "2": {"abc": ["ab", "b"]}}), "vertex"),
    "a tree with a cycle": (tree_levels({"1": {"ab": ["abc"]}, "2": {"abc": ["ab"]}}), "hierarchy"),
    "a tree with two parents": (tree_levels({"1": {"ab": ["a", "b"]}, "2": {"abc": ["a", "c"]}}), "hierarchy"),
    "a tree of numbers": (tree_levels({"1": [1, 2]}), "hierarchy"),
    "levels that are no numbers": (tree_levels({"one": {"ab": ["a", "b"]}}), "hierarchy"),
    "levels that are a list": (tree_levels([]), "hierarchy"),
    "no settings": (without("settings"), "file"),
    "no tau": (without("tau"), "settings"),
    "no vertex map": (without("vertex"), "file"),
    "no gap": (without("votes.gap"), "file"),
    "no classes of the votes": (without("classes"), "hierarchy"),
    "no name of votes": (without("votes_path"), "file"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", sorted(TAMPERED))
def test_what_was_tampered_with_is_named(case: str, saved: Path) -> None:
    change, name = TAMPERED[case]
    outcome = cs.verify(repack(saved, change))
    assert name in failed(outcome), outcome.checks[-1]
    passed_before = [check.name for check in outcome.checks[: [c.name for c in outcome.checks].index(name)]]
    assert all(check.passed for check in outcome.checks if check.name in passed_before)
    assert all(check.detail for check in outcome.checks)


def test_an_unchanged_repacked_certificate_still_passes(saved: Path) -> None:
    assert cs.verify(repack(saved, lambda meta, arrays: None)).passed


def test_missing_files_and_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="certificate must be a file"):
        cs.verify(tmp_path / "missing.npz")
    random_votes(0, num_classes=3, n=20, size=(2, 2)).save(tmp_path / "votes.npz")
    with pytest.raises(cs.InputError, match="must be a certificate file, got a 'votes' file"):
        cs.verify(tmp_path / "votes.npz")


def test_it_works_where_stats_and_certify_cannot_be_imported(saved: Path) -> None:
    program = f"""
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.startswith(("certiseg.stats", "certiseg.certify", "certiseg.planning", "certiseg.kernels")):
                raise ImportError(f"{{name}} is blocked")

    sys.meta_path.insert(0, Blocked())
    from certiseg.verify import verify
    assert verify({str(saved)!r}).passed
    assert not verify({str(repack(saved, swap_a_vertex))!r}).passed
    try:
        import certiseg.certify
    except ImportError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "is blocked" in done.stdout


def test_a_mistake_in_the_statistics_is_found(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published codes' mistake, n - n0 trials, made on purpose in the code that certifies."""
    from certiseg.stats import binomial

    original = binomial.BinomialTest.critical
    monkeypatch.setattr(
        binomial.BinomialTest,
        "critical",
        lambda self, level: original(binomial.BinomialTest(self.n - 10, self.tau), level),
    )
    votes = random_votes(11, num_classes=4, n=40, size=(5, 6), classes=TREE.classes)
    outcome = verify_saved(certify(votes, TREE, method="nested", tau=0.6, alpha=0.1), tmp_path)
    assert failed(outcome)[0] == "critical"


# -- redrawing ---------------------------------------------------------------------------------------------------


def network(seed: int = 0) -> cs.Segmenter:
    torch.manual_seed(seed)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1)
    )
    with torch.no_grad():
        layers[2].weight *= 20
        layers[2].bias.zero_()
    return cs.Segmenter(layers, divisible_by=2)


PICTURE = np.random.default_rng(4).random((11, 14, 3), np.float32)


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    votes = cs.sample(network(), PICTURE, sigma=0.25, n0=6, n=40, seed=5, batch_size=3, temperature=2.0)
    certify(votes, TREE, alpha=0.1).save(tmp_path / "c.npz")
    return tmp_path / "c.npz"


def test_redrawing_agrees_bit_for_bit(drawn: Path) -> None:
    before = torch.get_num_threads()
    outcome = cs.verify(drawn, model=network(), image=PICTURE)
    assert outcome.passed, outcome.checks[-1]
    assert outcome.checks[-1].name == "redraw"
    assert outcome.checks[-1].detail == "all 6 + 40 draws gave the same votes"
    assert torch.get_num_threads() == before


def test_redrawing_agrees_for_stopped_votes_and_the_synthetic_model(tmp_path: Path) -> None:
    model = SyntheticSegmenter(np.random.default_rng(0).dirichlet(np.full(4, 0.3), (5, 6)))
    votes = cs.sample(model, model.image, sigma=0.25, n0=5, n=90, stop=lambda v: v.n >= 40, stop_every=20)
    certify(votes, TREE, alpha=0.3, tau=0.5, test="anytime").save(tmp_path / "c.npz")
    assert cs.verify(tmp_path / "c.npz", model=model, image=model.image).passed


def test_another_model_image_or_preparation_is_found_out(drawn: Path) -> None:
    for model, image in (
        (network(1), PICTURE),
        (network(), PICTURE[::-1]),
        (network(), PICTURE[:10]),
        (cs.Segmenter(network().model, divisible_by=2, mean=(0.5, 0.5, 0.5)), PICTURE),
        (cs.Segmenter(network().model), PICTURE),
    ):
        outcome = cs.verify(drawn, model=model, image=image)
        assert failed(outcome) == ["redraw"]
        assert "hash" in outcome.checks[-1].detail, "known before anything is drawn"


@pytest.mark.parametrize("changes", [{"seed": 6}, {"seed": None}, {"image_key": "0" * 64}])
def test_another_seed_or_image_key_in_the_file_is_found_out(changes: dict[str, Any], drawn: Path) -> None:
    changed = repack(drawn, votes_header(**changes))
    assert cs.verify(changed).passed, "without the model nobody can know"
    assert failed(cs.verify(changed, model=network(), image=PICTURE)) == ["redraw"]


def test_a_vote_moved_with_all_hashes_and_maps_made_valid_is_found_by_redrawing(drawn: Path, tmp_path: Path) -> None:
    honest = cs.load_certificate(drawn).votes
    counts = honest.counts.copy()
    row, column = np.argwhere(counts.max(axis=-1) == 39)[0]
    counts[row, column] = 40 * (counts[row, column] == 39)
    names = ("candidate", "gap", "ranking", "n0", "n", "sigma", "seed", "image_key", "provenance", "prediction")
    forged = cs.Votes(counts=counts, **{name: getattr(honest, name) for name in names})
    certify(forged, TREE, alpha=0.1).save(tmp_path / "forged.npz")
    assert cs.verify(tmp_path / "forged.npz").passed
    outcome = cs.verify(tmp_path / "forged.npz", model=network(), image=PICTURE)
    assert failed(outcome) == ["redraw"]
    assert "`counts` differs in 2 of" in outcome.checks[-1].detail


@pytest.mark.parametrize("name", ["gap", "ranking", "prediction"])
def test_what_no_draw_gave_is_found_by_redrawing_though_every_count_is_right(
    name: str, drawn: Path, tmp_path: Path
) -> None:
    honest = cs.load_certificate(drawn).votes
    changed = {"gap": lambda g: g / 2, "ranking": lambda r: r[..., [0, 2, 1, 3]], "prediction": lambda p: (p + 1) % 4}
    forged = replace(honest, **{name: changed[name](getattr(honest, name))})
    certify(forged, TREE, alpha=0.1).save(tmp_path / "forged.npz")
    assert cs.verify(tmp_path / "forged.npz").passed
    outcome = cs.verify(tmp_path / "forged.npz", model=network(), image=PICTURE)
    assert failed(outcome) == ["redraw"]
    assert f"`{name}` differs" in outcome.checks[-1].detail


def test_a_model_that_does_not_repeat_itself_is_found_out(tmp_path: Path) -> None:
    calls = 0

    def moody(images: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return torch.cat([images, images[:, :1] + 0.0003 * (calls % 3)], dim=1)

    model = cs.Segmenter(moody, num_classes=4)
    certify(cs.sample(model, PICTURE, sigma=0.25, n0=6, n=40), TREE, alpha=0.1).save(tmp_path / "c.npz")
    outcome = cs.verify(tmp_path / "c.npz", model=model, image=PICTURE)
    assert failed(outcome) == ["redraw"]
    assert "not deterministic" in outcome.checks[-1].detail


def test_a_model_of_the_same_name_with_other_classes_is_found_out(tmp_path: Path) -> None:
    def model_with(classes: int) -> cs.Segmenter:
        def model(images: torch.Tensor) -> torch.Tensor:
            return images.repeat(1, 2, 1, 1)[:, :classes]

        return cs.Segmenter(model, num_classes=classes)

    certify(cs.sample(model_with(4), PICTURE, sigma=0.25, n=20), TREE, alpha=0.1).save(tmp_path / "c.npz")
    assert failed(cs.verify(tmp_path / "c.npz", model=model_with(5), image=PICTURE)) == ["redraw"]


def test_a_model_that_breaks_and_votes_that_were_not_sampled_fail_the_redraw(drawn: Path, tmp_path: Path) -> None:
    certify(random_votes(0, num_classes=4, n=20, size=(11, 14)), TREE, alpha=0.1).save(tmp_path / "mine.npz")
    assert failed(cs.verify(tmp_path / "mine.npz", model=network(), image=PICTURE)) == ["redraw"]
    assert failed(cs.verify(drawn, model=network())) == ["redraw"]
    changed = repack(drawn, votes_header(provenance={}))
    assert failed(cs.verify(changed, model=network(), image=PICTURE)) == ["redraw"]


# -- names, marks and numbers around the proof -------------------------------------------------------------------


class Named(torch.nn.Module):
    """A small network of the CamVid classes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Conv2d(3, 31, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images) * 4


@pytest.fixture
def named(tmp_path: Path) -> tuple[Path, cs.Segmenter, np.ndarray]:
    """A certificate of a model that names its classes, over a preset."""
    tree = cs.load_hierarchy("camvid")
    model = cs.Segmenter(Named(), class_names=tree.classes, hierarchy="camvid")
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    votes = cs.sample(model, image, sigma=0.05, n0=3, n=60, seed=1)
    certify(votes, tree, tau=0.7, alpha=0.01).save(tmp_path / "named.npz")
    return tmp_path / "named.npz", model, image


def swap_names(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for names in (meta["hierarchy"]["classes"], meta["votes"]["classes"]):
        one, two = names.index("Car"), names.index("Pedestrian")
        names[one], names[two] = names[two], names[one]


def rename_vertex(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    levels = meta["hierarchy"]["levels"]
    levels["1"] = {("harmless" if name == "vehicle" else name): below for name, below in levels["1"].items()}
    for level in ("2", "3"):
        for name, below in levels.get(level, {}).items():
            levels[level][name] = ["harmless" if child == "vehicle" else child for child in below]


@pytest.mark.parametrize("change", [swap_names, rename_vertex])
def test_swapped_classes_and_renamed_vertices_are_noticed(
    change: Any, named: tuple[Path, cs.Segmenter, np.ndarray]
) -> None:
    path, model, image = named
    assert cs.verify(path, model=model, image=image).passed
    forged = repack(path, change)
    assert failed(cs.verify(forged, model=model, image=image)) == ["names"]
    assert failed(cs.verify(forged)) == ["names"], "the name of a preset binds its tree without a model, too"


def test_another_hierarchy_must_be_named(named: tuple[Path, cs.Segmenter, np.ndarray], tmp_path: Path) -> None:
    path, model, image = named
    own = cs.flat_hierarchy(cs.load_hierarchy("camvid").classes)
    votes = cs.load_certificate(path).votes
    certify(votes, own, method="sets", tau=0.7, alpha=0.01).save(tmp_path / "own.npz")
    assert failed(cs.verify(tmp_path / "own.npz", model=model, image=image)) == ["names"]
    assert cs.verify(tmp_path / "own.npz", model=model, image=image, hierarchy=own).passed


def test_without_a_model_the_outcome_says_that_nothing_was_redrawn(
    named: tuple[Path, cs.Segmenter, np.ndarray],
) -> None:
    path, model, image = named
    assert "not redrawn" in cs.verify(path).notes[0]
    assert not cs.verify(path).redrawn
    assert cs.verify(path, model=model, image=image).notes == ()


def test_a_cleared_mark_of_stopping_is_noticed(tmp_path: Path) -> None:
    model = SyntheticSegmenter(np.random.default_rng(0).dirichlet(np.full(4, 0.5), (5, 6)))
    votes = cs.sample(model, model.image, sigma=0.25, n=60, stop=lambda votes: False, stop_every=30)
    certify(votes, method="sets", test="anytime").save(tmp_path / "c.npz")

    def clear(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["votes"]["stopped"] = False
        meta["settings"]["test"] = "fixed"
        redigest(meta, arrays)

    assert cs.verify(tmp_path / "c.npz").passed
    assert failed(cs.verify(repack(tmp_path / "c.npz", clear))) == ["votes"]


def test_counts_that_wrap_and_impossible_numbers_of_draws_are_noticed(saved: Path) -> None:
    def wrap(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        counts = arrays["votes.counts"].astype(np.uint64)
        counts[..., 0] += np.uint64(2**63)
        counts[..., 1] += np.uint64(2**63)
        arrays["votes.counts"] = counts

    def many(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        meta["votes"]["n0"] = 10**9

    for change in (wrap, many):
        assert failed(cs.verify(repack_with_digest(saved, change))) == ["votes"]


def repack_with_digest(path: Path, change: Any) -> Path:
    """As `repack`, with the digest that the checker itself would compute."""
    from certiseg.verify import _votes_digest

    def both(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        change(meta, arrays)
        votes = {n.removeprefix("votes."): a for n, a in arrays.items() if n.startswith("votes.")}
        meta["votes_digest"] = _votes_digest(meta["votes"], votes)

    return repack(path, both)


def test_settings_in_numbers_of_numpy_are_verified(tmp_path: Path) -> None:
    votes = random_votes(0, num_classes=3, n=60, size=(4, 4))
    cert = certify(votes, method="sets", tau=np.float32(0.9), alpha=np.float64(0.01))
    assert verify_saved(cert, tmp_path).passed
    assert type(cert.settings.tau) is float


def test_r_rests_on_the_noise_that_was_drawn(tmp_path: Path) -> None:
    from dataclasses import replace

    for sigma in (0.3, 0.7, 0.1, 0.25):
        votes = replace(random_votes(0, num_classes=3, n=60, size=(4, 4)), sigma=sigma)
        cert = certify(votes, method="sets", tau=0.75)
        from scipy.stats import norm

        assert cert.radius <= float(np.float32(sigma)) * norm.ppf(0.75)
        assert cert.radius <= sigma * norm.ppf(0.75)
        assert verify_saved(cert, tmp_path).passed


def test_a_picture_is_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "street.png").write_bytes(b"\x89PNG and more")
    with pytest.raises(cs.InputError, match="must be a certificate file of certiseg, got another kind of file"):
        cs.verify(tmp_path / "street.png")

"""Hovering tells the library's numbers."""

import numpy as np
import pytest

from tests.viewer.test_map import certificate_of, hits_at


def ask(client, row, column, **changes):
    client.asked += 1
    query = client.choice(lane="t", request=client.asked, row=row, column=column, **changes)
    return client.http.get("/api/pixel", params=query)


@pytest.mark.parametrize(
    "changes", [{"method": "segcertify"}, {"method": "nested"}, {"method": "sets"}, {"method": "level", "level": 1}]
)
def test_a_pixel_in_numbers(client, run, changes):
    certificate = certificate_of(run, client.choice(**changes))
    votes, tree, truth = certificate.votes, certificate.hierarchy, run.label("scene 0")
    just = np.argwhere(np.take_along_axis(votes.counts, votes.ranking.astype(int), 2)[..., 0] == certificate.critical)
    assert len(just)  # a pixel with just enough votes
    for row, column in [(0, 0), (5, 9), (12, 20), (23, 31), just[0]]:
        told = ask(client, row, column, **changes).json()
        candidate = int(votes.candidate[row, column])
        assert told["candidate"] == tree.vertices[candidate]
        assert told["gap"] == float(votes.gap[row, column])
        assert told["certified"] == list(certificate.labels_at(row, column))
        assert told["radius"] == certificate.radius_map[row, column]
        assert told["critical"] == certificate.critical
        assert told["truth"] == ("void" if truth[row, column] == 255 else tree.classes[truth[row, column]])
        for link in told["path"]:
            inside = votes.counts[row, column][list(tree.leaves(link["name"]))].sum()
            assert link["votes"] == inside
            assert link["passes"] == (inside >= certificate.critical)
            assert tree.ancestor(candidate, link["level"]) == link["vertex"]
        ranked = votes.counts[row, column][votes.ranking[row, column]].cumsum()
        assert [link["votes"] for link in told["sets"]] == ranked.tolist()
        assert [link["passes"] for link in told["sets"]] == (ranked >= certificate.critical).tolist()


def test_why_a_pixel_abstains(client, run):
    certificate = certificate_of(run, client.choice(method="segcertify"))
    tree = certificate.hierarchy
    row, column = np.argwhere(certificate.abstained)[0]
    why = ask(client, row, column, method="segcertify").json()["why"]
    candidate = int(certificate.votes.candidate[row, column])
    hits = hits_at(certificate, row, column)
    assert why.startswith(f"{tree.vertices[candidate]}: {hits} of 100 votes, {certificate.critical} needed")
    above = next(v for v in tree.ancestors[candidate] if v != candidate)
    coarser = certificate.votes.counts[row, column][tree.members[above]].sum()
    assert f"({tree.vertices[above]}): {coarser}" in why


def test_why_where_nothing_can_be_certified(client):
    assert "not even 100 of 100" in ask(client, 0, 0, method="segcertify", tau=0.99).json()["why"]


def test_why_a_pixel_is_certified(client, run):
    certificate = certificate_of(run, client.choice(method="sets"))
    row, column = np.argwhere(certificate.set_size == 2)[0]
    names = " or ".join(certificate.labels_at(row, column))
    assert ask(client, row, column, method="sets").json()["why"].startswith(f"certified: {names}, ")


def test_pixels_outside_are_refused(client):
    answer = ask(client, 24, 0)
    assert answer.status_code == 400
    assert "24 x 32" in answer.json()["error"]

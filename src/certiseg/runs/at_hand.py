"""What of an image's draws can be put together in one place, to look at the first so many of them."""

from __future__ import annotations

from certiseg.models.segmenter import Segmenter
from certiseg.partial_votes import DrawRange, PartialVotes, load_partial_votes
from certiseg.runs.folder import RunFolder
from certiseg.runs.looks import looks_of, recorded_rule
from certiseg.sampling import votes_of
from certiseg.votes import Votes


class AtHand:
    """The draws of an image at one sigma that can be put together here: `held`, and partial votes of the folder."""

    def __init__(self, folder: RunFolder, name: str, held: PartialVotes) -> None:
        self.folder, self.name, self.held = folder, name, held
        self.looks, self.anchors = looks_of(folder.manifest), len(held.settings.anchors)
        self.others = {path: folder.ranges_in(path) for path in folder.parts(name, held.settings.sigma)}
        """Partial votes that were not added yet, with the draws that they hold."""

    def open_looks(self) -> list[int]:
        """The looks that may still be to come: whoever drew on across a look has asked it, in vain."""
        spans = [[part for part in ranges if part.stage == "estimation"] for ranges in self.others.values()]
        ends = [(min(p.first for p in parts), max(p.last for p in parts)) for parts in spans if parts]
        asked = [look for look in self.looks if any(a < look * self.anchors < b for a, b in ends)]
        return [look for look in self.looks if look > max(asked, default=0)]

    def votes_at(self, look: int, segmenter: Segmenter) -> Votes | None:
        """The votes of exactly the first `look` draws, None where some of them are elsewhere or not made yet."""
        upto, held = look * self.anchors, self.held
        below = [path for path, ranges in self.others.items() if _ends_by(upto, ranges)]
        done = {stage: flags.copy() for stage, flags in held.done.items()}
        for part in [part for path in below for part in self.others[path]]:
            done[part.stage][part.first : part.last] = True
        if not done["selection"].all() or not done["estimation"][:upto].all() or done["estimation"][upto:].any():
            return None
        for path in below:
            held.add(load_partial_votes(path))
            del self.others[path]
        manifest = self.folder.manifest
        stops = manifest.stop_undecided is not None
        return votes_of(held, segmenter, n=look, stopped=stops, rule=recorded_rule(manifest))

    def save(self) -> None:
        """Keep what is held; partial votes of the folder that were added to it go."""
        if any(done.any() for done in self.held.done.values()):
            self.folder.save_part(self.name, self.held)
            self.folder.tidy_parts(self.name)


def _ends_by(upto: int, ranges: list[DrawRange]) -> bool:
    return all(part.stage == "selection" or part.last <= upto for part in ranges)

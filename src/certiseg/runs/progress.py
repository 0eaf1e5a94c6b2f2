"""What a running evaluation tells: a bar on a terminal, a line every few seconds elsewhere, nothing unless asked."""

from __future__ import annotations

import json
import sys
import time
from typing import IO, Literal

from tqdm import tqdm

from certiseg.scores import PixelSums, scores_of

LogFormat = Literal["text", "json"]
LOG_SECONDS = 5.0
"""Between two lines of a log."""


class Progress:
    """Counts what is done, and tells nobody. What an earlier start had done is counted apart, so rates are right."""

    def __init__(self) -> None:
        self.images = self.draws = 0
        """What there is to do in all, at most."""
        self.spared = 0
        """Draws that finished images did without, since they were stopped early."""
        self.found_images = self.found_draws = 0
        """What an earlier start had done."""
        self.new_images = self.new_draws = 0
        """What this start has done, images that were left out included."""
        self.left_out: dict[str, str] = {}
        self.sums: dict[str, PixelSums] = {}
        """Running sums of each method at the first setting, over the images of this start."""
        self._started = time.monotonic()

    def read(self, done: int, images: int) -> None:
        """So many images were read, to be compared with those of the run."""

    def begin(self, images: int, draws: int) -> None:
        """So much is to do in all."""
        self.images, self.draws, self._started = images, draws, time.monotonic()

    def found(self, draws: int, *, images: int = 0, unmade: int = 0) -> None:
        """So much was there already, and so many draws of it will never be made."""
        self.found_draws += draws
        self.found_images += images
        self._spare(unmade)
        self.show()

    def drew(self, draws: int) -> None:
        """So many draws were just made."""
        self.new_draws += draws
        self.show()

    def drop(self, draws: int) -> None:
        """So many draws that were made are not needed: a look has ended their image."""
        self.draws += draws
        self.show()

    def finished(self, sums: dict[str, PixelSums], *, unmade: int = 0) -> None:
        """An image is done; so many of its draws will never be made."""
        self.new_images += 1
        self._spare(unmade)
        for method, added in sums.items():
            known = self.sums.get(method)
            self.sums[method] = added if known is None else known + added
        self.show()

    def leave_out(self, name: str, reason: str, *, unmade: int) -> None:
        """An image cannot be used; so many of its draws will never be made."""
        self.new_images += 1
        self.draws -= unmade
        self.left_out[name] = reason
        self.show()

    def _spare(self, draws: int) -> None:
        self.draws -= draws
        self.spared += draws

    def note(self, text: str) -> None:
        """A sentence about something that happened on the way."""

    def show(self) -> None:
        """Called whenever something has changed."""

    def close(self, *, ended: bool = True) -> None:
        """The run has ended, or was ended by something else that is told."""

    @property
    def seconds(self) -> float:
        """Since the first task of this start."""
        return max(time.monotonic() - self._started, 1e-9)

    @property
    def images_per_hour(self) -> float:
        """Over this start."""
        return self.new_images / self.seconds * 3600

    @property
    def seconds_left(self) -> float | None:
        """At the rate of this start; None before its first draw."""
        return self.draws_left * self.seconds / self.new_draws if self.new_draws else None

    @property
    def draws_left(self) -> int:
        """Draws still to be made, if the other images are stopped as early as those that are done."""
        most = self.draws - self.found_draws - self.new_draws
        done = self.found_images + self.new_images
        if not self.spared or not done:
            return most
        return max(0, most - round((self.images - done) * self.spared / (done - len(self.left_out) or 1)))


class Bar(Progress):
    """A bar over draws, with images per hour and the running scores of the first setting."""

    def __init__(self, title: str, stream: IO[str]) -> None:
        super().__init__()
        self.bar = tqdm(unit="draw", desc=title, file=stream, smoothing=0.05)

    def read(self, done: int, images: int) -> None:
        self.bar.set_postfix_str(f"reading images, {done} of {images}")

    def begin(self, images: int, draws: int) -> None:
        super().begin(images, draws)
        self.bar.set_postfix_str("")
        self.bar.reset(total=draws)

    def found(self, draws: int, *, images: int = 0, unmade: int = 0) -> None:
        super().found(draws, images=images, unmade=unmade)
        self.bar.initial = self.found_draws  # tqdm's rate and time left leave this out

    def show(self) -> None:
        done = self.found_draws + self.new_draws
        self.bar.total = done + self.draws_left
        self.bar.update(done - self.bar.n)
        if self.new_images:
            self.bar.set_postfix(self._scores(), refresh=False)

    def note(self, text: str) -> None:
        self.bar.clear()
        self.bar.fp.write(f"note: {text}\n")

    def close(self, *, ended: bool = True) -> None:  # noqa: ARG002 - a bar ends the same way either way
        self.bar.close()

    def _scores(self) -> dict[str, str]:
        shown = {"images/h": f"{self.images_per_hour:.0f}"}
        if self.sums:
            method = "nested" if "nested" in self.sums else next(iter(self.sums))
            scores = scores_of(self.sums[method])
            shown |= {f"{method} CIG": f"{scores.cig:.3f}", "abstain": f"{scores.abstain:.1%}"}
        return shown


class LogLines(Progress):
    """A line every few seconds: images done, their rate over this start, the time left, images left out."""

    def __init__(self, title: str, stream: IO[str], log_format: LogFormat = "text") -> None:
        super().__init__()
        self.title, self.stream, self.log_format = title, stream, log_format
        self._next = time.monotonic() + LOG_SECONDS

    def read(self, done: int, images: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOG_SECONDS
            said = {"event": "reading", "run": self.title, "images_done": done, "images": images}
            text = f"{self.title}: reading images, {done} of {images}"
            self._print(json.dumps(said) if self.log_format == "json" else text)

    def show(self) -> None:
        if time.monotonic() >= self._next:
            self._write()

    def note(self, text: str) -> None:
        self._print(json.dumps({"event": "note", "text": text}) if self.log_format == "json" else f"note: {text}")

    def close(self, *, ended: bool = True) -> None:
        if self.images and ended:
            self._write()

    def _write(self) -> None:
        self._next = time.monotonic() + LOG_SECONDS
        done, left = self.found_images + self.new_images, self.seconds_left
        if self.log_format == "json":
            line = {"event": "progress", "run": self.title, "images_done": done, "images": self.images}
            made = self.found_draws + self.new_draws
            line |= {"draws_done": made, "draws": made + self.draws_left}
            line |= {"images_per_hour": round(self.images_per_hour, 1), "left_out": len(self.left_out)}
            self._print(json.dumps(line | {"seconds_left": None if left is None else round(left)}))
            return
        time_left = "time left unknown" if left is None else f"{_clock(left)} left"
        rate = f"{self.images_per_hour:.0f} images/h"
        self._print(f"{self.title}: {done} of {self.images} images, {rate}, {time_left}, {len(self.left_out)} left out")

    def _print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


def progress_on(title: str, log_format: LogFormat | None = None) -> Progress:
    """A bar if stderr is a terminal and no format was asked for, otherwise lines."""
    stream = sys.stderr
    if log_format is None and stream.isatty():
        return Bar(title, stream)
    return LogLines(title, stream, log_format or "text")


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"

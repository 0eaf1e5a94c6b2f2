"""Images dropped onto the page: certified with the run's model and settings, the map growing draw by draw.

The anytime test makes every intermediate map a certificate: the draws may be stopped by looking at them.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import write_atomically
from certiseg.certificate import Certificate, Settings
from certiseg.certify import NothingCertifiable, certify
from certiseg.errors import InputError
from certiseg.images import read_image
from certiseg.planning import require_certifiable
from certiseg.runs.manifest import Setting
from certiseg.viewer.shelf import DROPPED, NotFound, Shelf
from certiseg.votes import Votes, sample

MAX_BYTES = 64 << 20
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM", "MPO")
_MAX_VOTE_BYTES = 2 << 30
_UPDATES = 20
"""How often the growing map is shown."""


class Busy(InputError):
    """Only one image is certified at a time."""


class _Cancelled(Exception):
    """Raised between two draws."""


@dataclass
class Drop:
    """One dropped image on its way to a certificate."""

    id: str
    name: str
    settings: Settings
    sigma: float
    total: int
    pixels: NDArray[np.float32]
    state: str = "drawing"
    """drawing, done, cancelled or failed."""
    made: int = 0
    """Draws so far, the n0 selection draws included."""
    certificate: Certificate | None = None
    """The newest certificate of the draws so far."""
    error: str | None = None
    wish: str | None = None
    """What the page asked for: cancel, or stop and keep."""
    thread: threading.Thread | None = field(default=None, repr=False)

    def facts(self) -> dict[str, Any]:
        """What the page shows of its progress."""
        n = 0 if self.certificate is None else self.certificate.votes.n
        known = {"id": self.id, "name": self.name, "state": self.state, "made": self.made, "total": self.total}
        return {**known, "error": self.error, "method": self.settings.method, "shown_draws": n}


class Drops:
    """Certifies dropped images, one at a time, in a thread of its own."""

    def __init__(self, shelf: Shelf, load_model: Callable[[], Any]) -> None:
        self.shelf, self.load_model = shelf, load_model
        self._model: Any = None
        self._lock = threading.Lock()
        self.current: Drop | None = None

    def require_idle(self) -> None:
        """Refuse a second image before its bytes are taken."""
        if self.current is not None and self.current.state == "drawing":
            raise Busy(f"one image is certified at a time, and {self.current.name} is not done; cancel it first")

    def find(self, number: str) -> Drop:
        if self.current is None or self.current.id != number:
            raise NotFound("no such dropped image is being certified; drop it again")
        return self.current

    def start(self, upload: Path, name: str, setting: Setting, method: str) -> Drop:
        """Check an uploaded file and begin to certify it; the file is not needed afterwards."""
        manifest = self.shelf.manifest
        if setting not in manifest.each_setting() or method not in manifest.methods:
            raise InputError(f"setting and method must be of the run, got {setting} and {method[:40]!r}")
        pixels = read_upload(upload, name, self.shelf.tree.num_classes)
        ranked = min(5, self.shelf.tree.num_classes)
        planned = self.shelf.settings_of(setting.tau, method, ranked)
        settings = Settings(**{**vars(planned), "test": "anytime"})
        require_certifiable(
            pixels=pixels.shape[0] * pixels.shape[1],
            n=setting.n,
            tau=setting.tau,
            alpha=settings.alpha,
            sigma=setting.sigma,
            test="anytime",
        )
        with self._lock:
            self.require_idle()
            number = hashlib.sha256(pixels.tobytes() + repr((setting, method)).encode()).hexdigest()[:12]
            total = manifest.n0 + setting.n
            drop = Drop(number, _plain(name, number), settings, setting.sigma, total, pixels)
            drop.thread = threading.Thread(target=self._certify, args=(drop, setting), daemon=True)
            self.current = drop
        drop.thread.start()
        return drop

    def _certify(self, drop: Drop, setting: Setting) -> None:
        try:
            certificate = self._draw(drop, setting)
            self._keep(drop, certificate)
            drop.certificate, drop.state = certificate, "done"
        except _Cancelled:
            drop.state = "cancelled"
        except (InputError, OSError) as error:
            drop.error, drop.state = str(error), "failed"
        except MemoryError:
            drop.error, drop.state = "not enough memory for this image and model; drop a smaller one", "failed"
        except Exception as error:
            drop.error, drop.state = f"the model failed: {type(error).__name__}: {error}", "failed"

    def _draw(self, drop: Drop, setting: Setting) -> Certificate:
        import torch

        manifest, model = self.shelf.manifest, self._checked_model()
        torch.set_num_threads(manifest.threads)

        def progress(draws: int) -> None:
            drop.made += draws
            if drop.wish == "cancel":
                raise _Cancelled

        def stop(votes: Votes) -> bool:
            drop.certificate = self._certificate(drop, votes)
            return drop.wish == "stop" or not drop.certificate.abstained.any()

        votes = sample(
            model,
            drop.pixels,
            sigma=setting.sigma,
            n0=manifest.n0,
            n=setting.n,
            seed=manifest.seed,
            batch_size=manifest.batch_size,
            temperature=manifest.temperature,
            noise=manifest.noise,
            max_set=max(5, drop.settings.max_set or 0),
            stop=stop,
            stop_every=max(1, setting.n // _UPDATES),
            progress=progress,
        )
        return self._certificate(drop, votes)

    def _certificate(self, drop: Drop, votes: Votes) -> Certificate:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingCertifiable)  # the first draws cannot certify anything
            return certify(votes, self.shelf.tree, **asdict(drop.settings))

    def _checked_model(self) -> Any:
        """The run's model, loaded on first use; another one is refused."""
        if self._model is None:
            model, manifest = self.load_model(), self.shelf.manifest
            if model.fingerprint() != manifest.model_sha256:
                raise InputError(
                    f"model must be the run's ({manifest.model}, sha256 {manifest.model_sha256[:12]}), got "
                    f"{model.name} ({model.fingerprint()[:12]}); start `certiseg view` with the run's model options"
                )
            self._model = model
        return self._model

    def _keep(self, drop: Drop, certificate: Certificate) -> None:
        """The picture, the certificate with its votes, and a summary, in the run folder."""
        from PIL import Image

        folder = drop_folder(self.shelf)
        with write_atomically(self.shelf.inside(folder / f"{drop.name}.png")) as file:
            Image.fromarray((drop.pixels * 255).round().astype(np.uint8)).save(file, "PNG")
        facts = {"abstain": certificate.abstain_rate, "sigma": certificate.votes.sigma, "n": certificate.votes.n}
        summary = {"format_version": 1, **facts, "settings": asdict(certificate.settings)}
        with write_atomically(self.shelf.inside(folder / f"{drop.name}.json")) as file:
            file.write(json.dumps(summary, indent=1).encode())
        certificate.save(self.shelf.inside(folder / f"{drop.name}.certificate.npz"))


def drop_folder(shelf: Shelf) -> Path:
    """RUN/dropped, made if it is not there; never a link that leads out of the run."""
    folder = shelf.inside(shelf.root / DROPPED)
    folder.mkdir(exist_ok=True)
    return folder


def read_upload(path: Path, name: str, num_classes: int) -> NDArray[np.float32]:
    """The pixels of an uploaded file, refused by its header where it is no image or too large to certify."""
    from PIL import Image

    most = min(_MAX_VOTE_BYTES // (8 * num_classes), 64_000_000)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as opened:
                width, height = opened.size
    except Image.DecompressionBombError:
        raise InputError(f"{name}: must have at most {most:,} pixels to be certified here, got far more") from None
    except Exception:
        raise InputError(f"{name}: must be a PNG, JPEG, WebP, BMP, TIFF or PPM image, got something else") from None
    if width * height > most:
        raise InputError(f"{name}: must have at most {most:,} pixels to be certified here, got {width} x {height}")
    try:
        return read_image(path)
    except InputError as error:
        raise InputError(str(error).replace(str(path), name)) from None


def _plain(name: str, number: str) -> str:
    """A file name of letters, digits, dots and dashes, told apart from others by a hash."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip(".-")[:60] or "image"
    return f"{stem}-{number}"

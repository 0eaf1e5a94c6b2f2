"""Images dropped onto the page: certified with the run's model and settings, while the map grows draw by draw.

They use the anytime test, so every map on the way is a certificate and drawing may be stopped by looking at it. Each
upload has noise of its own; one whose image was uploaded before says so, because keeping the best is exploration.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from certiseg.archive import write_atomically
from certiseg.bounds import OF_BOUNDS, BoundSettings, make_bounds
from certiseg.certificate import Certificate
from certiseg.certify import make_certificate
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import Picture, read_stored, shown
from certiseg.images.values import scaled, with_channels
from certiseg.measures.questions import Question, kept, objects
from certiseg.noise import image_key
from certiseg.planning import require_certifiable
from certiseg.runs.folder import UPLOADED
from certiseg.runs.settings import Setting
from certiseg.sampling import sample
from certiseg.settings import CertificateSettings
from certiseg.viewer.run_reader import NotFound, RunReader
from certiseg.votes import Votes

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

MAX_BYTES = 64 << 20
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM")
_MAX_VOTE_BYTES = 2 << 30
_UPDATES = 20
"""How often the growing map is shown."""


class Busy(InputError):
    """Only one image is certified at a time."""


class _Cancelled(Exception):
    """Ends the drawing of an upload."""


@dataclass
class Upload:
    """One uploaded image on its way to a certificate."""

    id: str
    name: str
    setting: Setting
    settings: CertificateSettings
    total: int
    """Draws planned, the n0 selection draws included."""
    stored: NDArray[Any]
    """The numbers of its file."""
    picture: Picture
    key: str
    """The hash of the pixels."""
    earlier: int = 0
    """How often the same image was uploaded before."""
    seed: int = field(default_factory=lambda: secrets.randbits(53))
    """Of its noise, never used before: what earlier draws of the same image have shown decides nothing here."""
    state: str = "drawing"
    """drawing, done, cancelled or failed."""
    made: int = 0
    """Draws so far."""
    certificate: Certificate | None = None
    """Of the draws so far."""
    error: str | None = None
    wish: str | None = None
    """What the page asked for: cancel, or stop and keep."""

    def facts(self) -> dict[str, Any]:
        """What the page shows of its progress."""
        n = 0 if self.certificate is None else self.certificate.votes.n
        known = {"id": self.id, "name": self.name, "state": self.state, "made": self.made, "total": self.total}
        known["earlier"] = self.earlier
        return {**known, "error": self.error, "method": self.settings.method, "shown_draws": n}


@dataclass(frozen=True)
class _UntilCertified:
    """Stops when every pixel is certified, or when somebody says so; the upload shows the map on the way."""

    upload: Upload
    tree: Hierarchy
    rule: ClassVar = {"rule": "until every pixel is certified, or stopped on the page"}

    def __call__(self, votes: Votes) -> bool:
        shown = self.upload.certificate = make_certificate(votes, self.tree, self.upload.settings)
        return self.upload.wish == "stop" or not shown.abstained.any()


class Uploads:
    """Certifies uploaded images, one at a time, each in a thread of its own."""

    def __init__(self, reader: RunReader, load_model: Callable[[], Segmenter]) -> None:
        self.reader, self.load_model = reader, load_model
        self._model: Segmenter | None = None
        self._lock = threading.Lock()
        self.current: Upload | None = None
        self._begun: Counter[str] = Counter()
        """How often an image was uploaded since the start, cancelled uploads counted."""

    def require_idle(self) -> None:
        """Refuse a second image before its bytes are taken."""
        if self.current is not None and self.current.state == "drawing":
            raise Busy(f"one image is certified at a time, and {self.current.name} is not done; cancel it first")

    def find(self, number: str) -> Upload:
        if self.current is None or self.current.id != number:
            raise NotFound("no such dropped image is being certified; drop it again")
        return self.current

    def start(self, content: bytes, name: str, setting: Setting, method: str) -> Upload:
        """Check an uploaded file and begin to certify it."""
        manifest = self.reader.manifest
        if setting not in manifest.each_setting() or method not in manifest.methods:
            raise InputError(f"setting and method must be of the run, got {setting} and {method[:40]!r}")
        upload_folder(self.reader)  # where nothing can be kept, nothing is drawn
        stored, picture = read_upload(content, name, self.reader)
        pixels = picture.pixels
        settings = replace(manifest.certificate(setting, method), test="anytime")
        manifest.threat.require_fits(pixels)
        require_certifiable(
            pixels=pixels.shape[0] * pixels.shape[1],
            alpha=settings.alpha,
            test="anytime",
            threat=manifest.threat,
            radius=manifest.radius,
            **asdict(setting),
        )
        with self._lock:
            self.require_idle()
            number, key = secrets.token_hex(6), image_key(pixels)
            earlier = max(self.reader.uploads_of(key), self._begun[key])
            self._begun[key] += 1
            total = (manifest.n0 + setting.n) * len(manifest.sampling(setting.sigma).anchors)
            upload = Upload(number, _plain(name, number), setting, settings, total, stored, picture, key, earlier)
            self.current = upload
        threading.Thread(target=self._certify, args=(upload,), daemon=True).start()
        return upload

    def _certify(self, upload: Upload) -> None:
        try:
            certificate = self._draw(upload)
            self._keep(upload, certificate)
            upload.certificate, upload.state = certificate, "done"
        except _Cancelled:
            upload.state = "cancelled"
        except (InputError, OSError) as error:
            upload.error, upload.state = str(error), "failed"
        except MemoryError:
            upload.error, upload.state = "image must fit into memory with this model; drop a smaller one", "failed"
        except Exception as error:
            upload.error, upload.state = f"the model failed: {type(error).__name__}: {error}", "failed"

    def _draw(self, upload: Upload) -> Certificate:
        manifest, model, tree, settings = self.reader.manifest, self.model(), self.reader.tree, upload.settings

        def progress(draws: int) -> None:
            upload.made += draws
            if upload.wish == "cancel":
                raise _Cancelled

        votes = sample(
            model,
            upload.picture,
            **vars(
                replace(manifest.sampling(upload.setting.sigma), n=upload.setting.n, snapshots=(), seed=upload.seed)
            ),
            measures=self._questions(),
            hierarchy=tree,
            keep_maps=True,
            stop=_UntilCertified(upload, tree),
            stop_every=max(1, upload.setting.n // _UPDATES),
            progress=progress,
            threads=manifest.threads,
        )
        return make_certificate(votes, tree, settings)

    def _questions(self) -> list[Question]:
        """What is measured: the whole image, and objects as in the run, or those that the hierarchy names."""
        manifest, tree = self.reader.manifest, self.reader.tree
        labels = manifest.objects or tree.things
        return [kept(), *([objects(*labels, least=manifest.least_area)] if labels else [])]

    def model(self) -> Segmenter:
        """The run's model, loaded on first use; another one is refused."""
        if self._model is None:
            model, manifest = self.load_model(), self.reader.manifest
            if model.fingerprint() != manifest.model_sha256:
                raise InputError(
                    f"model must be the run's ({manifest.model}, sha256 {manifest.model_sha256[:12]}), got "
                    f"{model.name} ({model.fingerprint()[:12]}); start `certiseg view` with the run's model options"
                )
            self._model = model
        return self._model

    def _keep(self, upload: Upload, certificate: Certificate) -> None:
        """Write picture, summary, bounds and the certificate with its votes into the run folder, the last one last."""
        folder = upload_folder(self.reader)
        with write_atomically(self.reader.inside(folder / f"{upload.name}.png")) as file:
            Image.fromarray(shown(upload.picture)).save(file, "PNG")
        if upload.stored.dtype != np.uint8 or upload.stored.shape[2] not in (1, 3):  # more than the picture shows
            with write_atomically(self.reader.inside(folder / f"{upload.name}.npy")) as file:
                np.save(file, upload.stored)
        facts = {"abstain": certificate.abstain_rate, "sigma": certificate.votes.sigma, "n": certificate.votes.n}
        known = {"image_key": upload.key, "earlier": upload.earlier, "settings": asdict(certificate.settings)}
        summary = {"format_version": 1, **facts, **known}
        with write_atomically(self.reader.inside(folder / f"{upload.name}.json")) as file:
            file.write(json.dumps(summary, indent=1).encode())
        settings = BoundSettings(**{name: getattr(certificate.settings, name) for name in OF_BOUNDS})
        make_bounds(certificate.votes, settings).save(self.reader.inside(folder / f"{upload.name}.bounds.npz"))
        certificate.save(self.reader.inside(folder / f"{upload.name}.certificate.npz"))


def upload_folder(reader: RunReader) -> Path:
    """RUN/dropped, made if it is not there; a link that leads out of the run is refused."""
    folder = reader.inside(reader.root / UPLOADED)
    folder.mkdir(exist_ok=True)
    return folder


def read_upload(content: bytes, name: str, reader: RunReader) -> tuple[NDArray[Any], Picture]:
    """The numbers of an uploaded file, and its pixels as the run's images have them.

    Its header tells what is no image or too large to certify.
    """
    most = min(_MAX_VOTE_BYTES // (8 * reader.tree.num_classes), 64_000_000)
    stored = read_stored(content, name, formats=FORMATS, most=most)
    picture = scaled(stored, reader.manifest.values or None, name)
    return stored.reshape(*picture.pixels.shape[:2], -1), with_channels(picture, reader.channels, name)


def _plain(name: str, number: str) -> str:
    """A file name of letters, digits, dots and dashes; a number sets it apart from others."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip(".-")[:60] or "image"
    return f"{stem}-{number}"

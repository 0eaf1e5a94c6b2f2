"""certiseg: what a segmentation model will not confuse, proven by randomized smoothing.

    import certiseg as cs
    votes = cs.sample(cs.load_model("compact"), "street.png", sigma=0.25)
    cert = cs.certify(votes, cs.load_hierarchy("camvid"))
    print(cert.claim())

Names are loaded on first use, so that `import certiseg` stays light.
"""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "ABSTAIN": "hierarchy",
    "ROOT": "hierarchy",
    "Hierarchy": "hierarchy",
    "load_hierarchy": "hierarchy",
    "flat_hierarchy": "hierarchy",
    "InputError": "errors",
    "Segmenter": "models.segmenter",
    "load_model": "models.load",
    "Votes": "votes",
    "sample": "sampling",
    "load_votes": "votes",
    "Certificate": "certificate",
    "load_certificate": "certificate",
    "certify": "certify",
    "bound": "bounds",
    "load_bounds": "bounds",
    "critical_count": "stats.binomial",
    "score": "scores",
    "evaluate": "runs.evaluate",
    "open_run": "runs.run",
    "Scores": "scores",
    "verify": "verify",
    "calibrate": "truth.calibrate",
}

if TYPE_CHECKING:
    from certiseg.bounds import bound, load_bounds
    from certiseg.certificate import Certificate, load_certificate
    from certiseg.certify import certify
    from certiseg.errors import InputError
    from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy, flat_hierarchy, load_hierarchy
    from certiseg.models.load import load_model
    from certiseg.models.segmenter import Segmenter
    from certiseg.runs.evaluate import evaluate
    from certiseg.runs.run import open_run
    from certiseg.sampling import sample
    from certiseg.scores import Scores, score
    from certiseg.stats.binomial import critical_count
    from certiseg.truth.calibrate import calibrate
    from certiseg.verify import verify
    from certiseg.votes import Votes, load_votes

__all__ = [
    "ABSTAIN",
    "ROOT",
    "Certificate",
    "Hierarchy",
    "InputError",
    "Scores",
    "Segmenter",
    "Votes",
    "__version__",
    "bound",
    "calibrate",
    "certify",
    "critical_count",
    "evaluate",
    "flat_hierarchy",
    "load_bounds",
    "load_certificate",
    "load_hierarchy",
    "load_model",
    "load_votes",
    "open_run",
    "sample",
    "score",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certiseg' has no attribute {name!r}")
    value = getattr(_import_module(f"certiseg.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


class _PublicMap(_ModuleType):
    """Keeps `certiseg.certify` and `certiseg.verify` functions: importing the files of those names replaces nothing."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _PublicMap

"""From what is chosen to a model, the hierarchy over its classes, and what should be known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, load_hierarchy
from certiseg.models.backends import with_backend
from certiseg.models.hub import is_hub_name
from certiseg.models.load import load_model
from certiseg.models.specs import split_spec

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter
    from certiseg.models.settings import ModelChoice


@dataclass(frozen=True)
class ChosenModel:
    """A model that was made, the hierarchy over its classes, and what a reader of the certificate should know."""

    segmenter: Segmenter
    hierarchy: Hierarchy | None
    notes: tuple[str, ...] = ()
    choice: ModelChoice | None = None
    """What makes it again elsewhere, with nothing left to be measured; None for a model that was given as an object."""


def load_choice(choice: ModelChoice) -> Segmenter:
    """The model of a choice in its own backend, with nothing in front of it."""
    return load_model(choice.model, trust=choice.trust_model, output=choice.model_output, **choice.said)


def choose_model(
    choice: ModelChoice, *, size: tuple[int, int] | None = None, sigmas: tuple[float, ...] = ()
) -> ChosenModel:
    """Make the model that was chosen, with the hierarchy as said or the model's own.

    size: height and width of the (first) image; the backend `auto` measures there.
    sigmas: the noise to come; the denoiser must be told the one value.
    """
    if choice.denoiser and len(sigmas) != 1:
        raise InputError(f"sigma must be a single value with a denoiser, got {len(sigmas)}; make one run for each")
    model, notes = load_choice(choice), []
    choice = replace(choice, model=_settled(choice.model, model.name))
    hierarchy = given_model(model, choice.said.get("hierarchy")).hierarchy
    if choice.backend is not None:
        model = with_backend(model, choice.backend, size)
        if choice.backend == "auto":
            notes.append(f"the fastest backend here is {model.backend}")
        choice = replace(choice, backend=model.backend)  # type: ignore[arg-type]
    if choice.denoiser:
        model = model.denoised(sigma=sigmas[0])
    return ChosenModel(model, hierarchy, (*notes, *model.notes(hierarchy, size)), choice)


def _settled(spec: str, name: str) -> str:
    """The spec with the commit that was fetched, where it is of the Hub: whoever loads it later gets the same model."""
    place, _ = split_spec(spec)
    of_hub = place.startswith("hf:") and is_hub_name(place.removeprefix("hf:"))
    return name.partition("?")[0] + spec[len(place) :] if of_hub else spec


def given_model(model: Segmenter, hierarchy: str | None = None) -> ChosenModel:
    """A model with the hierarchy of this name or file, or its own."""
    name = hierarchy or model.hierarchy
    tree = None if name is None else load_hierarchy(name)
    if tree is not None and (model.class_names or model.num_classes):
        tree.require_classes(model.class_names or model.num_classes or 0)
    return ChosenModel(model, tree, tuple(model.notes(tree)))

"""Models of the Hugging Face Hub, from a small hub on loopback: what is fetched, what is recorded, what is refused."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.models.choice import choose_model
from certiseg.models.settings import ModelChoice
from tests.models.small_hub import COMMIT, SmallHub, serving
from tests.models.test_huggingface import PROCESSOR
from tests.models.tiny import NAMES

transformers = pytest.importorskip("transformers")
library = pytest.importorskip("huggingface_hub")

SPEC = f"hf:streets/segformer@{COMMIT}"


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small SegFormer with code and pickles beside it, and a repository of pickles alone."""
    root = tmp_path_factory.mktemp("hub")
    config = transformers.SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
        id2label=dict(enumerate(NAMES)),
        label2id={name: index for index, name in enumerate(NAMES)},
    )
    good, bad = root / "streets" / "segformer", root / "streets" / "pickles"
    transformers.SegformerForSemanticSegmentation(config).save_pretrained(good)
    (good / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    (good / "modeling_evil.py").write_text("raise SystemExit('ran')")
    (good / "checkpoints").mkdir()
    bad.mkdir()
    (bad / "config.json").write_bytes((good / "config.json").read_bytes())
    for place in (good / "pytorch_model.bin", good / "checkpoints" / "old.safetensors", bad / "pytorch_model.bin"):
        place.write_bytes(pickle.dumps({"weights": 1}))
    return root


@pytest.fixture
def hub(repositories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallHub]:
    with serving(repositories) as server:
        monkeypatch.setattr(library.constants, "ENDPOINT", server.address)
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(library.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(library.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(library.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        monkeypatch.chdir(tmp_path)
        yield server


def test_only_safetensors_and_json_are_fetched_once_and_the_commit_is_recorded(hub: SmallHub) -> None:
    model = cs.load_model("hf:streets/segformer")
    assert (model.name, model.class_names) == (SPEC, NAMES)
    assert set(hub.asked) == {"config.json", "model.safetensors", "preprocessor_config.json"}
    votes = cs.sample(model, np.zeros((32, 40, 3), np.uint8), sigma=0.1, n=2, n0=1)
    assert votes.provenance["model"] == SPEC
    hub.asked.clear()
    again = cs.load_model(SPEC)
    assert (again.name, again.fingerprint()) == (SPEC, model.fingerprint())
    assert hub.asked == [], "it was in the cache"


def test_workers_make_the_same_commit_again(hub: SmallHub) -> None:
    chosen = choose_model(ModelChoice(model="hf:streets/segformer@main?divisible_by=32"))
    assert chosen.choice is not None
    assert chosen.choice.model == f"{SPEC}?divisible_by=32"


def test_a_folder_of_that_name_wins(hub: SmallHub, repositories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repositories)
    assert cs.load_model("hf:streets/segformer").name == "hf:segformer"
    assert hub.asked == []


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("hf:streets/segfromer", "must be a folder here or a repository of the Hub, got neither.*check the spelling"),
        ("hf:streets/seg--former", "must be a folder here or a repository of the Hub, got neither"),
        ("hf:streets/segformer@nowhere", "must name a branch, tag or commit of the repository, got a revision that it"),
        (f"hf:streets/segformer@{'1' * 40}", "must name a branch, tag or commit of the repository"),
        ("hf:streets/pickles", "must hold its weights as safetensors, got none; other formats can run code"),
        ("hf:streets/gated", "must be open to you, got a gated repository"),
        ("hf:a/b/c", "must be a folder or repository with config.json and model.safetensors, got no folder"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence(hub: SmallHub, repositories: Path, spec: str, told: str) -> None:
    (repositories / "streets" / "gated").mkdir(exist_ok=True)
    hub.gated.add("streets/gated")
    with pytest.raises(cs.InputError, match=told) as caught:
        cs.load_model(spec)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{spec}: ")
    assert "pytorch_model.bin" not in hub.asked


def test_without_a_network_the_cache_serves_and_a_sentence_names_snapshot_download(
    hub: SmallHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    cs.load_model("hf:streets/segformer")
    monkeypatch.setattr(library.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert cs.load_model("hf:streets/segformer").name == SPEC
    with pytest.raises(cs.InputError, match=r"got: no answer from http://127.0.0.1:9 .*snapshot_download\('streets/o'"):
        cs.load_model("hf:streets/o")
    monkeypatch.setattr(library.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(cs.InputError, match=r"within reach, got: .*snapshot_download\('streets/other', local_dir"):
        cs.load_model("hf:streets/other")


def test_the_command_fetches_certifies_and_names_the_commit(repositories: Path, tmp_path: Path) -> None:
    Image.fromarray(np.full((32, 40, 3), 90, np.uint8)).save(tmp_path / "street.png")
    command = [sys.executable, "-m", "certiseg", "certify", "street.png", "--model", "hf:streets/segformer"]
    options = ["--method", "segcertify", "-n", "60", "--batch-size", "8", "--out", "out"]
    with serving(repositories) as server:
        place = {"HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
        run = {"cwd": tmp_path, "capture_output": True, "text": True, "env": {**os.environ, **place}}
        done = subprocess.run([*command, *options], **run)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "street.json").read_text())["model"]["model"] == SPEC
    assert (tmp_path / "home" / "hub" / "models--streets--segformer").is_dir()

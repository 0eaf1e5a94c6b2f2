"""HRNetV2-W48 and its OCR variant against the published name lists and a second, functional statement of the nets."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from certiseg.errors import InputError
from certiseg.models import hrnet
from certiseg.models.hrnet import hrnet_w48, hrnet_w48_ocr, load_hrnet, num_classes_of
from certiseg.models.weight_files import load_weights, read_weights

REPO = Path(__file__).parents[2]
LISTS = REPO.parent / "shared" / "models"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small layers on busy cores: threads that wait for each other cost far more than they save."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def randomise(net, seed=0):
    """Weights and BN statistics under which every layer changes the scores by a visible amount."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in net.state_dict().items():
        if name.endswith("running_var") or (name.endswith("weight") and value.ndim == 1):
            value.uniform_(0.5, 1.5, generator=generator)
        elif value.ndim == 4:
            value.normal_(0, (0.5 / value[0].numel()) ** 0.5, generator=generator)
        elif value.is_floating_point():
            value.normal_(0, 0.1, generator=generator)
    return net.eval()


@pytest.fixture(scope="module")
def plain():
    return randomise(hrnet_w48(19)).double()


@pytest.fixture(scope="module")
def ocr():
    return randomise(hrnet_w48_ocr(21)).double()


@pytest.fixture(scope="module")
def tiny_net():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hrnet, "WIDTHS", (1, 2, 3, 4))
        return randomise(hrnet_w48(5))


@pytest.fixture
def tiny(tiny_net, monkeypatch):
    """The plain net with branches of 1 to 4 channels, like every net built meanwhile: quick to save and load."""
    monkeypatch.setattr(hrnet, "WIDTHS", (1, 2, 3, 4))
    return tiny_net


# names, shapes, counts


@pytest.mark.shared
@pytest.mark.skipif(not LISTS.is_dir(), reason="the published name lists are in ../shared/models, which is absent")
@pytest.mark.parametrize("build, file", [(hrnet_w48, "hrnet_w48_19"), (hrnet_w48_ocr, "hrnet_w48_ocr_171")])
def test_names_and_shapes_equal_the_published_lists(build, file):
    lines = (LISTS / f"{file}_state_dict.txt").read_text().splitlines()
    with torch.device("meta"):
        state = build().state_dict()
    ours = [f"{name} {'x'.join(map(str, value.shape)) or 'scalar'}" for name, value in state.items()]
    assert ours == [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("build, classes, count", [(hrnet_w48, 19, 65_859_379), (hrnet_w48_ocr, 171, 70_560_246)])
def test_parameter_counts_are_the_published_ones(build, classes, count):
    with torch.device("meta"):
        assert sum(p.numel() for p in build(classes).parameters()) == count
        assert sum(p.numel() for p in build().parameters()) == count


@pytest.mark.parametrize("bad", [0, -1, 19.0, "19", None, 10**9])
def test_a_wrong_class_count_is_refused(bad):
    with pytest.raises(InputError, match="num_classes must be a whole number from 1"):
        hrnet_w48(bad)
    with pytest.raises(InputError, match="num_classes must be a whole number from 1"):
        hrnet_w48_ocr(bad)


# a second statement of the nets: arithmetic on a dictionary of tensors, layer by layer


def enlarge(x, size, aligned):
    """Bilinear: output row r lies at input row r (h - 1) / (H - 1) if aligned, else at (r + 1/2) h / H - 1/2."""
    for axis, length in zip((2, 3), size, strict=True):
        old = x.shape[axis]
        at = torch.arange(length, dtype=x.dtype)
        at = at * ((old - 1) / max(length - 1, 1)) if aligned else ((at + 0.5) * old / length - 0.5).clamp(0, old - 1)
        low = at.floor().clamp(max=max(old - 2, 0))
        part = (at - low).view([-1, 1] if axis == 2 else [-1])
        low = low.long()
        x = x.index_select(axis, low) * (1 - part) + x.index_select(axis, (low + 1).clamp(max=old - 1)) * part
    return x


class Reference:
    def __init__(self, state, aligned):
        self.state, self.aligned = state, aligned

    def conv(self, x, name, stride=1):
        weight = self.state[f"{name}.weight"]
        return F.conv2d(x, weight, self.state.get(f"{name}.bias"), stride, weight.shape[-1] // 2)

    def bn(self, x, name):
        scale, shift, mean, var = (
            self.state[f"{name}.{part}"].view(-1, 1, 1) for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / (var + 1e-5).sqrt() * scale + shift

    def unit(self, x, name, stride=1):
        return self.bn(self.conv(x, f"{name}.0", stride), f"{name}.1")

    def block(self, x, name, depth):
        y = x
        for k in range(1, depth + 1):
            y = self.bn(self.conv(y, f"{name}.conv{k}"), f"{name}.bn{k}")
            y = y.relu() if k < depth else y
        short_cut = self.unit(x, f"{name}.downsample") if f"{name}.downsample.0.weight" in self.state else x
        return (y + short_cut).relu()

    def exchange(self, xs, name):
        for b in range(len(xs)):
            for k in range(4):
                xs[b] = self.block(xs[b], f"{name}.branches.{b}.{k}", 2)
        outputs = []
        for i in range(len(xs)):
            total = xs[i]
            for j in range(len(xs)):
                path, y = f"{name}.fuse_layers.{i}.{j}", xs[j]
                if j > i:
                    total = total + enlarge(self.unit(y, path), xs[i].shape[2:], self.aligned)
                for k in range(i - j):
                    y = self.unit(y, f"{path}.{k}", stride=2)
                    y = y.relu() if k < i - j - 1 else y
                total = total + y if j < i else total
            outputs.append(total.relu())
        return outputs

    def features(self, x):
        for k in (1, 2):
            x = self.bn(self.conv(x, f"conv{k}", stride=2), f"bn{k}").relu()
        for k in range(4):
            x = self.block(x, f"layer1.{k}", 3)
        xs = [self.unit(x, "transition1.0").relu(), self.unit(x, "transition1.1.0", stride=2).relu()]
        xs = self.exchange(xs, "stage2.0")
        for stage, modules in ((3, 4), (4, 3)):
            xs.append(self.unit(xs[-1], f"transition{stage - 1}.{stage - 1}.0", stride=2).relu())
            for k in range(modules):
                xs = self.exchange(xs, f"stage{stage}.{k}")
        return torch.cat([enlarge(x, xs[0].shape[2:], self.aligned) for x in xs], 1)

    def head(self, x, name):
        return self.conv(self.unit(x, name).relu(), f"{name}.3")

    def transform(self, x, name, depth=1):
        for k in range(depth):
            x = self.bn(self.conv(x, f"{name}.{2 * k}"), f"{name}.{2 * k + 1}.0").relu()
        return x

    def ocr(self, images):
        features = self.features(images)
        auxiliary = self.head(features, "aux_head")
        x = self.unit(features, "conv3x3_ocr").relu()
        share = auxiliary.exp() / auxiliary.exp().sum((2, 3), keepdim=True)
        regions = torch.einsum("bkhw,bchw->bck", share, x)[..., None]
        block = "ocr_distri_head.object_context_block"
        query, key = self.transform(x, f"{block}.f_pixel", 2), self.transform(regions, f"{block}.f_object", 2)
        likeness = torch.einsum("bchw,bck->bkhw", query, key[..., 0]) / 16  # 16 = sqrt(256 key channels)
        weight = likeness.exp() / likeness.exp().sum(1, keepdim=True)
        context = torch.einsum("bkhw,bck->bchw", weight, self.transform(regions, f"{block}.f_down")[..., 0])
        both = torch.cat([self.transform(context, f"{block}.f_up"), x], 1)
        return auxiliary, self.conv(self.transform(both, "ocr_distri_head.conv_bn_dropout"), "cls_head")


def spread_and_error(ours, theirs):
    """How much the scores of a class differ between pixels, and the largest error relative to that."""
    spread = theirs.std((2, 3)).mean()
    return spread, (ours - theirs).abs().max() / spread


def test_scores_of_the_plain_net_equal_the_functional_statement(plain):
    images = torch.randn(1, 3, 65, 97, generator=torch.Generator().manual_seed(1)).double()
    with torch.inference_mode():
        ours, reference = plain(images), Reference(plain.state_dict(), aligned=False)
        theirs = reference.head(reference.features(images), "last_layer")
    spread, error = spread_and_error(ours, theirs)
    assert ours.shape == (1, 19, 17, 25)
    assert spread > 0.1
    assert error < 1e-9


def test_both_scores_of_the_ocr_net_equal_the_functional_statement(ocr):
    images = torch.randn(2, 3, 65, 97, generator=torch.Generator().manual_seed(1)).double()
    with torch.inference_mode():
        ours = ocr.both_scores(images)
        theirs = Reference(ocr.state_dict(), aligned=True).ocr(images)
        assert torch.equal(ocr(images), ours[1])
    for mine, other in zip(ours, theirs, strict=True):
        spread, error = spread_and_error(mine, other)
        assert mine.shape == (2, 21, 17, 25)
        assert spread > 0.1
        assert error < 1e-9


@pytest.mark.parametrize("size", [(128, 256), (129, 203), (96, 96)])
def test_both_ways_of_up_sampling_equal_the_functional_statement(size, monkeypatch):
    monkeypatch.setattr(hrnet, "WIDTHS", (6, 12, 24, 48))
    images = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1)).double()
    found = {}
    for aligned in (False, True):
        plain = randomise(hrnet_w48(19, align_corners=aligned)).double()
        ocr = randomise(hrnet_w48_ocr(7, align_corners=aligned)).double()
        with torch.inference_mode():
            reference = Reference(plain.state_dict(), aligned)
            theirs = reference.head(reference.features(images), "last_layer")
            found[aligned] = plain(images)
            spread, error = spread_and_error(found[aligned], theirs)
            _, error_of_ocr = spread_and_error(ocr(images), Reference(ocr.state_dict(), aligned).ocr(images)[1])
        assert spread > 0.05
        assert error < 1e-9
        assert error_of_ocr < 1e-9
    # The setting is no detail: it moves the labels of some pixels.
    assert (found[False].argmax(1) != found[True].argmax(1)).float().mean() > 0.005


def test_defaults_of_align_corners_are_those_of_the_published_configurations():
    with torch.device("meta"):
        assert not hrnet_w48().align_corners
        assert hrnet_w48_ocr().align_corners


def test_while_it_is_trained_the_ocr_net_gives_its_auxiliary_scores_too(tiny):
    net, images = randomise(hrnet_w48_ocr(5)), torch.randn(2, 3, 64, 64)
    assert isinstance(net(images), torch.Tensor)
    both = net.train()(images)
    assert set(both) == {"out", "aux"}
    assert both["out"].shape == both["aux"].shape == (2, 5, 16, 16)


def test_any_image_size_gives_a_quarter_rounded_up(tiny):
    ocr = randomise(hrnet_w48_ocr(5))
    for height, width in [(1, 1), (5, 7), (33, 31), (66, 34), (64, 127)]:
        with torch.inference_mode():
            scores = [tiny(torch.zeros(1, 3, height, width)), *ocr.both_scores(torch.zeros(1, 3, height, width))]
        assert {tuple(x.shape) for x in scores} == {(1, 5, -(-height // 4), -(-width // 4))}


def test_gradients_reach_every_parameter(tiny):
    net = randomise(hrnet_w48_ocr(5)).train()
    auxiliary, final = net.both_scores(torch.randn(2, 3, 64, 64))
    (auxiliary.square().mean() + final.square().mean()).backward()
    assert [name for name, p in net.named_parameters() if p.grad is None] == []


# loading


def wrap(prefix="", key=None, **extra):
    def wrapped(state):
        state = {prefix + name: value for name, value in state.items()} | extra
        return state if key is None else {"epoch": 3, key: state}

    return wrapped


WRAPPINGS = {
    "bare": wrap(),
    "model.": wrap("model."),
    "module.": wrap("module."),
    "module.model.": wrap("module.model.", **{"module.loss.criterion.weight": torch.ones(5)}),
    "loss": wrap("model.", **{"loss.criterion.weight": torch.ones(5)}),
    "state_dict": wrap(key="state_dict"),
    "model": wrap(key="model"),
    "model_state": wrap("module.", key="model_state"),
    "no counters": lambda state: {name: value for name, value in state.items() if "num_batches" not in name},
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_saved_weights_come_back_from_every_wrapping(tiny, tmp_path, wrapping):
    path = tmp_path / "weights.pth"
    torch.save(WRAPPINGS[wrapping](tiny.state_dict()), path)
    fresh = hrnet_w48(5).eval()
    load_weights(fresh, path)
    state = fresh.state_dict()
    assert all(torch.equal(state[name], value) for name, value in tiny.state_dict().items())
    images = torch.randn(1, 3, 40, 40)
    with torch.inference_mode():
        assert torch.equal(fresh(images), tiny(images))


def test_load_hrnet_reads_the_class_count_and_returns_the_net_in_eval_mode(tiny, tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(WRAPPINGS["no counters"](tiny.state_dict()), path)
    for loaded in (load_hrnet(path, ocr=False), load_hrnet(str(path), ocr=False, num_classes=5)):
        assert not loaded.training
        state = loaded.state_dict()
        assert list(state) == list(tiny.state_dict())
        assert all(torch.equal(state[name], value) for name, value in tiny.state_dict().items())


def test_safetensors_and_the_zipless_format_come_back(tiny, tmp_path):
    net = randomise(hrnet_w48_ocr(7))
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    torch.save(net.state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    for name in ("weights.safetensors", "old.pth"):
        loaded = load_hrnet(tmp_path / name, ocr=True)
        assert num_classes_of(loaded.state_dict()) == num_classes_of(read_weights(tmp_path / name)) == 7
        assert all(
            torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), net.state_dict().values(), strict=True)
        )


def test_half_precision_weights_become_single(tiny, tmp_path):
    state = {name: value.bfloat16() if value.ndim else value for name, value in tiny.state_dict().items()}
    torch.save(state, tmp_path / "half.pth")
    loaded = load_hrnet(tmp_path / "half.pth", ocr=False).state_dict()
    assert loaded["conv1.weight"].dtype == torch.float32
    assert torch.equal(loaded["conv1.weight"], state["conv1.weight"].float())


def refusal(path, content=None, **kwargs):
    """The sentence with which a file is refused."""
    if content is not None:
        torch.save(content, path)
    with pytest.raises(InputError) as caught:
        load_hrnet(path, **({"ocr": False} | kwargs))
    sentence = str(caught.value)
    assert path.name in sentence
    assert "\n" not in sentence
    assert len(sentence) < 700
    return sentence


def test_a_wrong_class_count_in_the_file_is_said_in_those_words(tiny, tmp_path):
    path = tmp_path / "five.pth"
    assert "built for 19 classes, file has 5" in refusal(path, tiny.state_dict(), num_classes=19)
    with pytest.raises(InputError, match="built for 19 classes, file has 5"):
        load_weights(hrnet_w48(19), path, num_classes_of)


def test_missing_unexpected_and_misshapen_names_are_listed_with_their_counts(tiny, tmp_path):
    state = tiny.state_dict()
    del state["conv1.weight"], state["bn1.bias"]
    state |= {f"extra{k}": torch.ones(1) for k in range(9)} | {"conv2.weight": torch.ones(2, 3)}
    sentence = refusal(tmp_path / "w.pth", state)
    assert "2 missing (conv1.weight, bn1.bias)" in sentence
    assert "9 unexpected (extra0, extra1, extra2, ...)" in sentence
    assert "1 of wrong shape (conv2.weight [2, 3] instead of [64, 64, 3, 3])" in sentence


def test_a_refused_file_leaves_the_module_as_it_was(tiny, tmp_path):
    net = randomise(hrnet_w48(5), seed=1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    torch.save(dict(list(tiny.state_dict().items())[:-1]), tmp_path / "short.pth")
    with pytest.raises(InputError, match=r"1 missing \(last_layer.3.bias\)"):
        load_weights(net, tmp_path / "short.pth")
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_the_other_nets_file_is_named(tiny, tmp_path):
    assert "got those of HRNetV2-W48" in refusal(tmp_path / "plain.pth", tiny.state_dict(), ocr=True)
    assert "got those of HRNetV2-W48-OCR" in refusal(tmp_path / "ocr.pth", hrnet_w48_ocr(5).state_dict())
    assert "other names (conv9.weight)" in refusal(tmp_path / "other.pth", {"conv9.weight": torch.ones(1)})


@pytest.mark.parametrize(
    "content, said",
    [
        ([1, 2], "got list"),
        (torch.ones(3), "got Tensor"),
        ({}, "no tensor at all"),
        ({"loss.weight": torch.ones(1)}, "no tensor at all"),
        ({3: torch.ones(1)}, "got dict"),
        ({"conv1.weight": "text"}, "other values under conv1.weight"),
        ({"last_layer.3.weight": torch.ones(())}, "missing"),
        ({"a\n\x1b[31m" + "b" * 10_000: torch.ones(1)}, r"'a\n\x1b[31m"),
        ({"last_layer.3.weight": torch.ones(1).expand(10**9, 720, 1, 1)}, "num_classes must be"),
    ],
)
def test_content_that_is_no_state_dict_is_refused(tmp_path, content, said):
    path = tmp_path / "w.pth"
    torch.save(content, path)
    with pytest.raises(InputError) as caught:
        load_hrnet(path, ocr=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value.fill_(torch.nan),
        lambda value: value.double() * 1e300,
        lambda value: value.int(),
        lambda value: value.to(torch.complex64),
        lambda value: value.to_sparse(),
        lambda value: value.to("meta"),
    ],
)
def test_tensors_that_are_not_finite_numbers_are_refused(tmp_path, spoil):
    module = torch.nn.Conv2d(2, 3, 1)
    torch.save({"bias": torch.ones(3), "weight": spoil(torch.ones(3, 2, 1, 1))}, tmp_path / "w.pth")
    with pytest.raises(InputError, match=r"w.pth must hold finite numbers, got others in 1 tensors \(weight\)"):
        load_weights(module, tmp_path / "w.pth")


def test_missing_empty_and_foreign_files_are_refused(tmp_path):
    assert "missing" in refusal(tmp_path / "absent.pth")
    assert "a folder" in refusal(tmp_path)
    for suffix in ("pth", "safetensors"):
        (tmp_path / f"empty.{suffix}").touch()
        assert "an empty file" in refusal(tmp_path / f"empty.{suffix}")
        for k, content in enumerate([b"not weights", b"\x00" * 64, b"PK\x03\x04" + b"\x00" * 40, b"\x80\x02]q\x00."]):
            (tmp_path / f"foreign{k}.{suffix}").write_bytes(content)
            refusal(tmp_path / f"foreign{k}.{suffix}")


@pytest.mark.parametrize("zipped", [True, False])
def test_files_cut_anywhere_are_refused(tmp_path, zipped):
    buffer = io.BytesIO()
    torch.save({"last_layer.3.weight": torch.ones(5, 720, 1, 1)}, buffer, _use_new_zipfile_serialization=zipped)
    content = buffer.getvalue()
    for share in (0.01, 0.1, 0.5, 0.9, 0.99):
        path = tmp_path / f"cut{share}.pth"
        path.write_bytes(content[: int(len(content) * share)])
        assert "damaged" in refusal(path)


class Intruder:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
@pytest.mark.parametrize("write", ["zip", "zipless", "pickle"])
def test_a_pickle_that_would_create_a_file_does_not_run(tmp_path, write, suffix):
    path, target = tmp_path / f"hostile.{suffix}", tmp_path / "created"
    content = {"conv1.weight": torch.ones(1), "x": Intruder(target)}
    if write == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=write == "zip")
    sentence = refusal(path)
    assert suffix == "safetensors" or "which was not run" in sentence
    assert not target.exists()


def test_numbers_of_numpy_beside_the_weights_are_read(tiny, tmp_path):
    """Training scripts store the best score and the epoch as NumPy scalars; NumPy 1 and 2 name them differently."""
    content = {"epoch": np.int64(3), "best_mIoU": np.float64(0.8), "flag": np.bool_(True), "rate": np.float32(0.01)}
    path = tmp_path / "checkpoint.pth.tar"
    for zipped in (True, False):
        torch.save({**content, "state_dict": tiny.state_dict()}, path, _use_new_zipfile_serialization=zipped)
        loaded = load_hrnet(path, ocr=False).state_dict()
        assert all(torch.equal(value, tiny.state_dict()[name]) for name, value in loaded.items())
    small = {"score": np.float64(0.5), "state_dict": {"weight": torch.ones(2)}}
    written = pickle_of(small)
    names = (b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n")
    assert sum(written.count(name) for name in names) == 1
    for name in names:
        path.write_bytes(written.replace(names[0], name).replace(names[1], name))
        assert read_weights(path)["weight"].tolist() == [1, 1]


def pickle_of(content):
    buffer = io.BytesIO()
    torch.save(content, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()

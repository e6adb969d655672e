"""CLIP-style models on other devices than the CPU, as far as a machine without them can show it."""

import gc

import numpy as np
import pytest
from tests.explanations.test_clip import bench, folder, pneumonia  # noqa: F401 - fixtures

import carina
from carina.explanations.methods import METHODS
from carina.models.clip import kinds
from carina.store.errors import CarinaError

OPTIONS = {"similarity": {"sigma": "0"}, "rise": {"masks": "16"}}
"""Options without which a method needs values on the way, which the device below does not have, or much time."""
LEFT_OUT = ("word-attention", "cross-attention")
"""Methods that need values on the way, or another model."""


@pytest.fixture
def moved(folder):  # noqa: F811
    """A model whose weights lie on torch's device without values, which mixes with no tensor of another device."""
    torch = pytest.importorskip("torch")

    def move(kind):
        before = [one for one in gc.get_objects() if type(one) in (torch.Tensor, torch.nn.Parameter)]
        known = {id(one) for one in before}
        model = kinds.open_clip_model(folder(kind))
        for one in gc.get_objects():
            if type(one) in (torch.Tensor, torch.nn.Parameter) and id(one) not in known:
                new = one.detach().to("meta")
                is_weight = isinstance(one, torch.nn.Parameter)
                torch.utils.swap_tensors(
                    one, torch.nn.Parameter(new, requires_grad=one.requires_grad) if is_weight else new
                )
        return model

    return move


def test_every_method_makes_its_tensors_on_the_device_of_the_model(moved):
    torch = pytest.importorskip("torch")
    model = moved("clip")
    names = [name for name in METHODS if name not in LEFT_OUT]
    assert len(names) > 8
    for name in names:
        options = METHODS[name].parse_options(OPTIONS.get(name, {}), seed=0)
        with torch.device("meta"):
            pixels = torch.zeros(2, 3, model.side, model.side)
            maps = METHODS[name].maps(model, pixels, model.prompts("pneumonia"), options)
        assert (maps.device.type, tuple(maps.shape)) == ("meta", (2, *model.grid)), name


@pytest.mark.parametrize(
    ("device", "message"),
    [("abacus", "unknown; expected cpu, cuda, cuda:1 or mps"), ("cuda", "not on this machine"),
     ("cuda:1", "not on this machine"), ("mps", "not on this machine")],
)  # fmt: skip
def test_a_device_that_is_not_there_is_refused(folder, monkeypatch, device, message):  # noqa: F811
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(CarinaError, match=f"device '{device}': {message}"):
        kinds.open_ensemble(folder("clip"), device)


def test_the_second_gpu_is_refused_where_there_is_one(folder, monkeypatch):  # noqa: F811
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(
        CarinaError, match=r"device 'cuda:1': not on this machine; it has 1 \(cuda:0 to cuda:0\)"
    ):
        kinds.open_clip_model(folder("clip"), "cuda:1")


def test_weights_are_read_to_the_device_and_layers_are_made_there(folder, monkeypatch):  # noqa: F811
    torch = pytest.importorskip("torch")
    from carina.models.clip import state_dict

    read, asked = state_dict.load_file, []

    def load_file(file, device):
        asked.append(device)
        assert torch.get_default_device().type == "cpu"
        return read(file)

    def make(_weights, create):
        asked.append(str(torch.get_default_device()))
        return create()

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(state_dict, "load_file", load_file)
    monkeypatch.setattr(state_dict.Weights, "make", make)
    # The CPU build cannot make a layer there, and says so.
    with pytest.raises(CarinaError, match="cannot be opened as clip"):
        kinds.open_clip_model(folder("clip"), "cuda:1")
    assert asked[0] == "cuda:1"
    assert set(asked) == {"cuda:1"}


def test_models_without_torch_and_checks_stay_on_the_cpu(pneumonia, folder, tmp_path):  # noqa: F811
    with pytest.raises(CarinaError, match="runs on the CPU; leave the device 'cuda' out"):
        carina.explain(pneumonia, "builtin/asymmetry", tmp_path / "maps", device="cuda")
    with pytest.raises(CarinaError, match="the checks run on the CPU"):
        carina.explain(pneumonia, folder("clip"), tmp_path / "maps", device="cuda", checks=1)
    run = carina.explain(pneumonia, "builtin/asymmetry", tmp_path / "maps", device="cpu", workers=1)
    assert len(run.maps) == 6


@pytest.mark.parametrize("kind", ["clip", "carzero"])
def test_maps_do_not_depend_on_the_batch_size(pneumonia, folder, tmp_path, kind):  # noqa: F811
    model = folder(kind)
    runs = [
        carina.explain(
            pneumonia, model, tmp_path / f"maps-{size}", batch_size=size, controls=False, workers=1
        )
        for size in (1, 4, 16)
    ]
    for one, other in zip(runs[0].maps, runs[1].maps, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-3 * np.ptp(one.values) + 1e-6)
        assert one.score == pytest.approx(other.score, abs=1e-5)
    # The size is no part of what the maps are: a run may go on with another.
    again = carina.explain(pneumonia, model, tmp_path / "maps-1", batch_size=3, controls=False, workers=1)
    assert [one.grid for one in again.maps] == [one.grid for one in runs[0].maps]

"""Old checkpoints to safetensors, without running what is in them."""

import collections
import json
import os
import sys
import types
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

from carina.errors import CarinaError  # noqa: E402
from carina.models.clip.convert import convert_checkpoint  # noqa: E402
from carina.models.clip.named import open_clip_model  # noqa: E402

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.bias": torch.tensor([1.0, 2.0])}


def saved(path, found, name="checkpoint.pt"):
    torch.save(found, path / name)
    return path / name


def same(file, expected):
    state = load_file(file)
    assert sorted(state) == sorted(expected)
    for key, value in expected.items():
        torch.testing.assert_close(state[key], value, rtol=0, atol=0)


def test_a_checkpoint_becomes_a_model_that_opens(published, tiny_clip, tmp_path):
    state = load_file(published("chexzero") / "model.safetensors")
    path = saved(tmp_path, collections.OrderedDict(state), "best_64.pt")
    tiny_clip.clip_tokenizer(tmp_path)
    file = convert_checkpoint(path, tmp_path / "chexzero", "chexzero")
    assert file == tmp_path / "chexzero" / "model.safetensors"
    same(file, state)
    said = json.loads((file.parent / "config.json").read_text())
    assert (said["kind"], said["source"]) == ("chexzero", "best_64.pt")
    assert len(said["source_sha256"]) == 64
    model, before = (
        open_clip_model(f"chexzero:{file.parent}"),
        open_clip_model(f"chexzero:{published('chexzero')}"),
    )
    torch.testing.assert_close(model.encode_text(["mass"]).pooled, before.encode_text(["mass"]).pooled)


def test_settings_beside_a_checkpoint_go_with_it(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    path = saved(old, STATE, "pytorch_model.bin")
    (old / "config.json").write_text('{"model_type": "clip"}')
    (old / "vocab.txt").write_text("[PAD]\n")
    (old / "model.py").write_text("raise SystemExit")
    (old / "letter.txt").write_text("not of the model")
    file = convert_checkpoint(path, tmp_path / "new", "clip")
    assert sorted(one.name for one in file.parent.iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]
    assert json.loads((file.parent / "config.json").read_text()) == {"model_type": "clip"}


def test_members_of_an_ensemble_lie_side_by_side(tmp_path):
    path = saved(tmp_path, STATE)
    for name in ("one", "two"):
        file = convert_checkpoint(path, tmp_path / "out" / f"{name}.safetensors", "chexzero")
        assert file == tmp_path / "out" / f"{name}.safetensors"
        same(file, STATE)


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("clip", {"epoch": 3, "name": "x", "state_dict": {f"module.{k}": v for k, v in STATE.items()}}, STATE),
        ("biovil", STATE | {"note": "text"}, STATE),
        ("medklip", {"model": {f"module.{k}": v for k, v in STATE.items()}, "optimizer": {"a": STATE}}, STATE),
        ("gloria", {"state_dict": {f"gloria.{k}": v for k, v in STATE.items()}, "hyper_parameters": {"lr": 1.0}},
         {f"gloria.{k}": v for k, v in STATE.items()}),
        ("kad", {"image_encoder": STATE, "text_encoder": {f"module.{k}": v for k, v in STATE.items()}, "model": STATE},
         {f"{part}.{k}": v for part in ("image_encoder", "text_encoder", "model") for k, v in STATE.items()}),
    ],
)  # fmt: skip
def test_weights_are_taken_from_where_each_kind_keeps_them(tmp_path, kind, found, expected):
    same(convert_checkpoint(saved(tmp_path, found), tmp_path / "out", kind), expected)


def test_weights_that_share_memory_are_written_each(tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    path = saved(tmp_path, {"one": shared, "two": shared, "turned": shared.T, "half": shared.half()})
    expected = {"one": shared, "two": shared, "turned": shared.T, "half": shared.half()}
    same(convert_checkpoint(path, tmp_path / "out", "clip"), expected)


def test_an_archive_around_the_checkpoint_is_opened(tmp_path):
    saved(tmp_path, STATE, "pytorch_model.bin")
    with zipfile.ZipFile(tmp_path / "medclip.zip", "w") as archive:
        archive.write(tmp_path / "pytorch_model.bin", "medclip-vit/pytorch_model.bin")
    same(convert_checkpoint(tmp_path / "medclip.zip", tmp_path / "out", "medclip"), STATE)


def test_files_older_than_archives_are_read(tmp_path):
    torch.save(STATE, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    same(convert_checkpoint(tmp_path / "old.pt", tmp_path / "out", "clip"), STATE)


# ---- what is in them beside weights ----


def foreign(monkeypatch, module, name):
    """A class of a library that is not installed."""
    parts = module.split(".")
    for index in range(len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[: index + 1]), types.ModuleType(module))
    made = type(name, (), {"__module__": module})
    setattr(sys.modules[module], name, made)
    return made


def test_settings_that_training_left_behind_come_out_empty(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        config = foreign(patched, "omegaconf.dictconfig", "DictConfig")()
        config.content = {"lr": 0.1, "kind": dict, "inner": foreign(patched, "omegaconf.nodes", "AnyNode")()}
        stopping = foreign(patched, "pytorch_lightning.callbacks.early_stopping", "EarlyStopping")
        found = {
            "state_dict": STATE,
            "hyper_parameters": config,
            "callbacks": {stopping: {"best": np.float64(0.5)}},
        }
        path = saved(tmp_path, found)
    assert "omegaconf" not in sys.modules
    same(convert_checkpoint(path, tmp_path / "out", "carzero"), STATE)
    assert "omegaconf" not in sys.modules


class Harm:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("archived", [True, False])
def test_code_in_a_checkpoint_is_not_run(tmp_path, archived):
    path = tmp_path / "harm.pt"
    torch.save(STATE | {"harm": Harm(tmp_path / "made")}, path, _use_new_zipfile_serialization=archived)
    with pytest.raises(
        CarinaError, match=r"harm\.pt: (holds an object of posix\.mkdir|cannot be read as weights)"
    ):
        convert_checkpoint(path, tmp_path / "out", "clip")
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "out").exists()


def test_an_object_of_another_library_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        path = saved(tmp_path, STATE | {"x": foreign(patched, "somebody.code", "Thing")()})
    with pytest.raises(
        CarinaError, match=r"holds an object of somebody\.code\.Thing, which is not made from a pickle"
    ):
        convert_checkpoint(path, tmp_path / "out", "clip")


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("medklip", STATE, "has no entry 'model', where medklip keeps its weights"),
        ("clip", [1, 2], "holds list instead of weights by name"),
        ("clip", {"epoch": 1}, "holds no weights; expected a checkpoint of clip"),
    ],
)
def test_what_is_no_checkpoint_of_that_kind_is_told(tmp_path, kind, found, expected):
    with pytest.raises(CarinaError, match=expected):
        convert_checkpoint(saved(tmp_path, found), tmp_path / "out", kind)


def test_a_file_that_is_missing_or_no_checkpoint_is_told(tmp_path):
    with pytest.raises(CarinaError, match=r"none\.pt: no such file; expected a checkpoint of clip"):
        convert_checkpoint(tmp_path / "none.pt", tmp_path / "out", "clip")
    (tmp_path / "text.pt").write_text("weights")
    with pytest.raises(CarinaError, match=r"text\.pt: cannot be read as weights alone"):
        convert_checkpoint(tmp_path / "text.pt", tmp_path / "out", "clip")

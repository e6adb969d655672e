"""Old checkpoints to safetensors, without running what is in them."""

import collections
import json
import os
import sys
import types
import zipfile
from decimal import Decimal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

from carina.models.clip import convert  # noqa: E402
from carina.models.clip.convert import convert_checkpoint  # noqa: E402
from carina.models.clip.kinds import open_clip_model  # noqa: E402
from carina.store.errors import CarinaError  # noqa: E402

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
    file = convert_checkpoint(path, tmp_path / "chexzero", "chexzero").path
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
    file = convert_checkpoint(path, tmp_path / "new", "clip").path
    assert sorted(one.name for one in file.parent.iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]
    assert json.loads((file.parent / "config.json").read_text()) == {"model_type": "clip"}


def test_members_of_an_ensemble_lie_side_by_side(tmp_path):
    path = saved(tmp_path, STATE)
    for name in ("one", "two"):
        file = convert_checkpoint(path, tmp_path / "out" / f"{name}.safetensors", "chexzero").path
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
    same(convert_checkpoint(saved(tmp_path, found), tmp_path / "out", kind).path, expected)


def test_weights_that_share_memory_are_written_each(tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    path = saved(tmp_path, {"one": shared, "two": shared, "turned": shared.T, "half": shared.half()})
    expected = {"one": shared, "two": shared, "turned": shared.T, "half": shared.half()}
    same(convert_checkpoint(path, tmp_path / "out", "clip").path, expected)


def test_an_archive_around_the_checkpoint_is_opened(tmp_path):
    saved(tmp_path, STATE, "pytorch_model.bin")
    with zipfile.ZipFile(tmp_path / "medclip.zip", "w") as archive:
        archive.write(tmp_path / "pytorch_model.bin", "medclip-vit/pytorch_model.bin")
    same(convert_checkpoint(tmp_path / "medclip.zip", tmp_path / "out", "medclip").path, STATE)


def test_files_older_than_archives_are_read(tmp_path):
    torch.save(STATE, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    same(convert_checkpoint(tmp_path / "old.pt", tmp_path / "out", "clip").path, STATE)


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
    same(convert_checkpoint(path, tmp_path / "out", "carzero").path, STATE)
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
    with pytest.raises(CarinaError, match=r"holds an object of somebody\.code\.Thing"):
        convert_checkpoint(path, tmp_path / "out", "clip")


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("medklip", STATE, "has no entry 'model', where medklip keeps its weights"),
        ("clip", [1, 2], "holds list instead of weights by name"),
        ("clip", {"epoch": 1}, "holds no weights; expected a checkpoint of clip"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(tmp_path, kind, found, expected):
    with pytest.raises(CarinaError, match=expected):
        convert_checkpoint(saved(tmp_path, found), tmp_path / "out", kind)


def test_an_unknown_kind_is_refused_with_the_known_kinds(tmp_path):
    with pytest.raises(CarinaError, match=r"kind 'medkilp': unknown; known are clip, .*\bmedklip, .*\bbert$"):
        convert_checkpoint(saved(tmp_path, STATE), tmp_path / "out", "medkilp")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:'torch.load' received a zip file:UserWarning")
def test_torchs_advice_to_trust_the_file_is_not_repeated(tmp_path):
    torch.save(
        STATE | {"harm": Harm(tmp_path / "made")}, tmp_path / "old.pt", _use_new_zipfile_serialization=False
    )
    torch.save({"a": Decimal(1)}, tmp_path / "other.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    for name, reason in (
        ("old.pt", "Trying to load unsupported GLOBAL posix.mkdir whose module posix is blocked."),
        ("other.pt", "Unsupported global: GLOBAL decimal.Decimal was not an allowed global by default."),
        ("script.pt", "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``."),
    ):
        with pytest.raises(CarinaError) as caught:
            convert_checkpoint(tmp_path / name, tmp_path / "out", "clip")
        assert str(caught.value) == f"{tmp_path / name}: cannot be read as weights alone: {reason}"


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, of what it will drop
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda plain: plain.to_sparse(), r"torch\.float32 with the layout torch\.sparse_coo"),
        (lambda plain: plain.to_sparse_csr(), r"torch\.float32 with the layout torch\.sparse_csr"),
        (lambda plain: torch.quantize_per_tensor(plain, 0.1, 0, torch.quint8), r"torch\.quint8"),
        (lambda plain: plain.to(torch.complex128), r"torch\.complex128"),
        (lambda plain: plain.to("meta"), r"torch\.float32"),
        (lambda plain: torch.nested.nested_tensor([plain[0], plain[1, :1]]), r"torch\.float32"),
    ],
)
def test_a_sparse_or_quantised_tensor_is_named_by_its_key(tmp_path, make, what):
    path = saved(tmp_path, {"model": STATE | {"module.head.weight": make(STATE["a.weight"])}})
    with pytest.raises(
        CarinaError,
        match=rf"checkpoint\.pt: weight module\.head\.weight is a tensor of {what}.*; expected plain",
    ):
        convert_checkpoint(path, tmp_path / "out", "medklip")
    assert not (tmp_path / "out").exists()


# ---- sizes ----


def packed(path, name, content, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", how) as archive:
        archive.writestr(name, content)
    return path


def test_an_archive_that_fills_a_disk_is_not_unpacked(tmp_path):
    path = packed(tmp_path / "bomb.zip", "pytorch_model.bin", bytes(10**7))
    assert path.stat().st_size < 10**5
    with pytest.raises(
        CarinaError, match=r"bomb\.zip: pytorch_model\.bin in it would unpack from [\d,]+ to 10,000,000 bytes"
    ):
        convert_checkpoint(path, tmp_path / "out", "medclip")


@pytest.mark.parametrize("inner", [False, True])
def test_a_checkpoint_that_fills_the_memory_is_not_read(tmp_path, inner):
    """torch's own files are archives too, and its reader unpacks them."""
    plain = saved(tmp_path, {"a": torch.zeros(10**6)}, "plain.pt")
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(plain) as archive, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name in archive.namelist():
            written.writestr(name, archive.read(name))
    if inner:
        path = packed(tmp_path / "medclip.zip", path.name, path.read_bytes(), zipfile.ZIP_STORED)
    with pytest.raises(CarinaError, match=r"plain/data/0 in it would unpack from [\d,]+ to 4,000,000 bytes"):
        convert_checkpoint(path, tmp_path / "out", "medclip")


def test_archives_that_are_larger_than_any_weights_are_refused(tmp_path, monkeypatch):
    path = saved(tmp_path, STATE)
    monkeypatch.setattr(convert, "LARGEST", 100)
    with pytest.raises(
        CarinaError, match=r"checkpoint\.pt: its content takes [\d,]+ bytes; expected at most 100$"
    ):
        convert_checkpoint(path, tmp_path / "out", "clip")


def test_a_tensor_that_expands_few_numbers_to_many_is_refused(tmp_path):
    path = saved(tmp_path, {"a": torch.zeros(1).expand(1000, 1000, 1000)})
    with pytest.raises(CarinaError, match=r"its content takes 4,000,000,000 bytes; expected at most [\d,]+$"):
        convert_checkpoint(path, tmp_path / "out", "clip")


def test_an_archive_that_lies_about_its_sizes_is_damaged(tmp_path):
    path = packed(tmp_path / "lie.zip", "pytorch_model.bin", bytes(range(256)) * 100)
    content = bytearray(path.read_bytes())
    size = content.rindex(b"PK\x01\x02") + 24
    content[size : size + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(
        CarinaError, match=r"lie\.zip: pytorch_model\.bin in it cannot be unpacked: Bad CRC-32"
    ):
        convert_checkpoint(path, tmp_path / "out", "medclip")


def test_a_file_that_is_missing_or_no_checkpoint_is_named(tmp_path):
    with pytest.raises(CarinaError, match=r"none\.pt: no such file; expected a checkpoint of clip"):
        convert_checkpoint(tmp_path / "none.pt", tmp_path / "out", "clip")
    (tmp_path / "text.pt").write_text("weights")
    with pytest.raises(CarinaError, match=r"text\.pt: cannot be read as weights alone"):
        convert_checkpoint(tmp_path / "text.pt", tmp_path / "out", "clip")

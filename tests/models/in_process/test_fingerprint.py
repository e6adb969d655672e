"""What tells two folders of one name apart; no model is loaded, so nothing of the extras is needed."""

import hashlib

import pytest
from tests.runs.conftest import CASES

from carina.cases import Provenance, write_benchmark
from carina.models import fingerprint, parse_model_name
from carina.models.registry import fingerprint_model
from carina.runs import claim, read_info, shards
from carina.runs.builtin.oracle import Oracle
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.store.errors import CarinaError


def weights_of(name):
    return fingerprint_model(parse_model_name(name))


def vlm(folder, weights=b"weights", **files):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    for name, content in files.items():
        (folder / name).write_text(content)
    return f"hf:{folder}"


def test_a_fingerprint_does_not_depend_on_the_folder(tmp_path):
    lines = "".join(
        f"{name}\t{len(content)}\t{hashlib.sha256(content).hexdigest()}\n"
        for name, content in [("config.json", b"{}"), ("model.safetensors", b"weights")]
    )
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert weights_of(vlm(tmp_path / "a" / "vlm")) == expected
    assert (
        weights_of(vlm(tmp_path / "b" / "vlm", **{"README.md": "a note", "pytorch_model.bin": "old"}))
        == expected
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": b"weighte"},
        {"weights": b"weights "},
        {"tokenizer.json": "{}"},
        {"chat_template.jinja": "{{ messages }}"},
        {"modeling_vlm.py": "pass"},
    ],
)
def test_a_fingerprint_changes_with_every_file_of_the_model(tmp_path, changed):
    assert weights_of(vlm(tmp_path / "a")) != weights_of(vlm(tmp_path / "b", **changed))


@pytest.mark.parametrize("place", [0, 1, 100, 127])
def test_large_files_are_fingerprinted_by_blocks(tmp_path, monkeypatch, place):
    monkeypatch.setattr(fingerprint, "_WHOLE", 100)
    monkeypatch.setattr(fingerprint, "_BLOCKS", 4)
    monkeypatch.setattr(fingerprint, "_BLOCK", 8)
    # Blocks begin at 0, 40, 80 and 120.
    plain = bytes(128)
    changed = plain[:place] + b"x" + plain[place + 1 :]
    seen = any(start <= place < start + 8 for start in (0, 40, 80, 120))
    one, other = weights_of(vlm(tmp_path / "a", plain)), weights_of(vlm(tmp_path / "b", changed))
    assert (one != other) is seen
    assert one != weights_of(vlm(tmp_path / "c", bytes(129)))


def test_all_files_of_a_classifier_count(tmp_path):
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"graph")
    alone = weights_of(f"onnx:{folder}")
    (folder / ".note").touch()
    assert weights_of(f"onnx:{folder}") == alone
    (folder / "weights.0").write_bytes(b"numbers")
    assert weights_of(f"onnx:{folder}") != alone


def test_models_without_files_have_no_fingerprint():
    assert weights_of("builtin/reader") is None
    assert weights_of("openai/gpt-5") is None


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A benchmark, and two models whose folders have one name; neither can really be loaded."""
    write_benchmark(tmp_path / "bench", CASES[:2], Provenance(command="test"))
    vlm(tmp_path / "a" / "checkpoint")
    vlm(tmp_path / "b" / "checkpoint", b"others")
    from carina.cases import open_benchmark

    monkeypatch.setattr(shards, "_open_once", lambda *_: Oracle(open_benchmark(tmp_path / "bench")))
    return tmp_path


def test_other_weights_in_a_folder_of_the_same_name_are_refused(folders):
    def run(name):
        return run_model(folders / "bench", f"hf:{folders / name}", folders / "run", RunOptions())

    info = run("a/checkpoint").info
    assert info.model == "hf:checkpoint"
    assert info.weights == weights_of(f"hf:{folders / 'a' / 'checkpoint'}")
    assert run("a/checkpoint").info == info
    with pytest.raises(
        CarinaError, match=rf"weights {info.weights[:12]}\.\.\., not .*: other files under the"
    ):
        run("b/checkpoint")
    assert read_info(folders / "run") == info


def test_a_run_without_a_weights_fingerprint_resumes(folders):
    from msgspec.structs import replace

    model = f"hf:{folders / 'a' / 'checkpoint'}"
    info = run_model(folders / "bench", model, folders / "run", RunOptions(limit=1)).info
    claim.write_info(folders / "run", replace(info, weights=None))
    assert run_model(folders / "bench", model, folders / "run", RunOptions()).counts.complete == 2


@pytest.mark.parametrize("kind", ["hf", "onnx"])
def test_a_missing_folder_is_refused_before_anything_is_written(folders, kind):
    with pytest.raises(CarinaError, match="nowhere: no such folder; expected one with"):
        run_model(folders / "bench", f"{kind}:{folders / 'nowhere'}", folders / "run", RunOptions())
    assert not (folders / "run").exists()

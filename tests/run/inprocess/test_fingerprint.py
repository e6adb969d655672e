"""What tells two folders of one name apart; no model is loaded, so nothing of the extras is needed."""

import hashlib

import pytest
from tests.run.conftest import CASES

from carina.cases import Provenance, write_benchmark
from carina.errors import CarinaError
from carina.models import fingerprint
from carina.run import RunOptions, claim, read_info, run_model, shards
from carina.run.builtin.oracle import Oracle
from carina.run.inprocess.fingerprint import weights_of


def vlm(folder, weights=b"weights", **files):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    for name, content in files.items():
        (folder / name).write_text(content)
    return f"hf:{folder}"


def test_the_same_files_in_another_place_are_the_same_model(tmp_path):
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
def test_anything_that_the_model_is_made_of_makes_another(tmp_path, changed):
    assert weights_of(vlm(tmp_path / "a")) != weights_of(vlm(tmp_path / "b", **changed))


@pytest.mark.parametrize("place", [0, 1, 100, 127])
def test_of_large_files_parts_are_read_from_the_first_byte_to_the_last(tmp_path, monkeypatch, place):
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


def test_other_models_have_no_files():
    assert weights_of("builtin/reader") is None
    assert weights_of("openai/gpt-5") is None


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A benchmark, and two models whose folders have one name; neither can really be loaded."""
    write_benchmark(tmp_path / "bench", CASES[:2], Provenance(command="test"))
    vlm(tmp_path / "a" / "checkpoint")
    vlm(tmp_path / "b" / "checkpoint", b"others")
    from carina.cases import open_benchmark

    monkeypatch.setattr(shards, "_examinee", lambda *_: Oracle(open_benchmark(tmp_path / "bench")))
    return tmp_path


def test_another_folder_of_the_same_name_does_not_go_on_with_a_run(folders):
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


def test_a_run_from_before_models_had_fingerprints_goes_on(folders):
    from msgspec.structs import replace

    model = f"hf:{folders / 'a' / 'checkpoint'}"
    info = run_model(folders / "bench", model, folders / "run", RunOptions(limit=1)).info
    claim.write_info(folders / "run", replace(info, weights=None))
    assert run_model(folders / "bench", model, folders / "run", RunOptions()).counts.complete == 2


@pytest.mark.parametrize("kind", ["hf", "onnx"])
def test_a_folder_that_is_not_there_is_named_before_anything_is_written(folders, kind):
    with pytest.raises(CarinaError, match="nowhere: no such folder; expected one with"):
        run_model(folders / "bench", f"{kind}:{folders / 'nowhere'}", folders / "run", RunOptions())
    assert not (folders / "run").exists()

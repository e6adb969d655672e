"""Names of models on the command line, and folders of weights: what is refused, and in which words."""

import hashlib
import json
import sys

import pytest

from carina.errors import CarinaError
from carina.models import extra, identify_segmenter, open_segmenter
from carina.models.sam import CLASSES
from carina.models.weights import Checkpoint


@pytest.fixture
def folder(tmp_path):
    """What a folder of weights looks like from outside; the weights are none."""
    (tmp_path / "sam-x").mkdir()
    (tmp_path / "sam-x" / "config.json").write_text('{"model_type": "sam"}')
    (tmp_path / "sam-x" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "sam-x" / "preprocessor_config.json").write_text("{}")
    return tmp_path / "sam-x"


@pytest.mark.parametrize("named", ["unet:weights", "weights", "sam:", ":weights", ""])
def test_unknown_names_are_refused_with_those_that_are_known(named):
    for function in (open_segmenter, identify_segmenter):
        with pytest.raises(CarinaError, match="known are sam:PATH"):
            function(named)


def test_an_identity_names_no_machine(folder):
    pytest.importorskip("torch")
    identity = identify_segmenter(f"sam:{folder}")
    assert identity.name == "sam:sam-x"
    assert identity.weights == hashlib.sha256(b"weights").hexdigest()


def test_an_identity_knows_weights_from_settings(folder):
    pytest.importorskip("torch")
    before = identify_segmenter(f"sam:{folder}")
    (folder / "preprocessor_config.json").write_text('{"size": 1}')
    after = identify_segmenter(f"sam:{folder}")
    assert (after.weights, after.settings != before.settings) == (before.weights, True)
    (folder / "model.safetensors").write_bytes(b"other")
    assert identify_segmenter(f"sam:{folder}").weights != before.weights


def test_weights_in_parts_are_known_by_all_of_them(folder):
    (folder / "model.safetensors").unlink()
    parts = {"model-00001-of-00002.safetensors": b"one", "model-00002-of-00002.safetensors": b"two"}
    for name, content in parts.items():
        (folder / name).write_bytes(content)
    index = {"weight_map": {"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    first = Checkpoint.of(folder).weights_sha256
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"2")
    assert Checkpoint.of(folder).weights_sha256 != first
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CarinaError, match=r"model-00002-of-00002\.safetensors: missing"):
        Checkpoint.of(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "sam_vit_b.pth", "model.pt"])
def test_pickles_are_refused(folder, name):
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(CarinaError, match=f"{name}: pickled weights can run code and are not read"):
        open_segmenter(f"sam:{folder}")


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("config.json", "missing; expected weights in the layout that transformers saves"),
        ("model.safetensors", "missing; download the model's safetensors weights and put them here"),
    ],
)
def test_a_missing_file_is_named(folder, missing, words):
    (folder / missing).unlink()
    with pytest.raises(CarinaError, match=f"{missing}: {words}"):
        open_segmenter(f"sam:{folder}")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(CarinaError, match="none: no such folder"):
        open_segmenter(f"sam:{tmp_path / 'none'}")


def test_other_models_are_refused_with_the_family(folder):
    (folder / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(
        CarinaError, match=f"model_type 'clip' is not of the SAM family; known are {', '.join(CLASSES)}"
    ):
        identify_segmenter(f"sam:{folder}")


def test_a_config_that_is_no_object_is_named(folder):
    (folder / "config.json").write_text("[1]")
    with pytest.raises(CarinaError, match=r"config\.json: not a JSON object"):
        open_segmenter(f"sam:{folder}")


def test_without_the_extra_one_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda name: None if name == "torch" else sys)
    for function in (open_segmenter, identify_segmenter):
        with pytest.raises(
            CarinaError,
            match=r"^this needs torch: pip install 'carina\[torch\]', in a clone pip install -e '\.\[torch\]'$",
        ):
            function(f"sam:{folder}")

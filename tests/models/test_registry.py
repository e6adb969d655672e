"""Names of models, their registry, and folders of weights: what is accepted and what is refused."""

import hashlib
import json
import sys

import pytest

from carina import models
from carina.models import MODELS, extra, identify_model, model_kind, parse_model_name
from carina.models.sam import CLASSES
from carina.models.weights import Checkpoint
from carina.store.errors import CarinaError


@pytest.fixture
def folder(tmp_path):
    """What a folder of weights looks like from outside; the weights are none."""
    (tmp_path / "sam-x").mkdir()
    (tmp_path / "sam-x" / "config.json").write_text('{"model_type": "sam"}')
    (tmp_path / "sam-x" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "sam-x" / "preprocessor_config.json").write_text("{}")
    return tmp_path / "sam-x"


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "location", "can"),
    [
        ("hf:weights/medgemma", "hf", "weights/medgemma", ("chat", "maps")),
        ("hf:google/medgemma-4b-it", "hf", "google/medgemma-4b-it", ("chat", "maps")),
        ("onnx:weights/net", "onnx", "weights/net", ("chat",)),
        ("biovil:weights/biovil", "biovil", "weights/biovil", ("maps",)),
        ("biovil-t:x", "biovil-t", "x", ("maps",)),
        ("sam:weights/medsam", "sam", "weights/medsam", ("segments",)),
        ("openai/gpt-5", "served", "openai/gpt-5", ("chat", "text")),
        ("openai-api/local/x", "served", "openai-api/local/x", ("chat", "text")),
        ("ollama/llama3.1:8b", "served", "ollama/llama3.1:8b", ("chat", "text")),
        ("builtin/oracle", "builtin/oracle", "", ("chat",)),
        ("builtin/asymmetry", "builtin/asymmetry", "", ("maps",)),
        ("control/uniform", "control/uniform", "", ("maps",)),
    ],
)
def test_a_name_has_a_kind_a_location_and_capabilities(text, kind, location, can):
    name = parse_model_name(text)
    assert (name.text, name.kind, name.location, name.capabilities) == (text, kind, location, can)
    assert name.is_served == (kind == "served")


@pytest.mark.parametrize(
    "text", ["unet:weights", "weights", "sam:", ":weights", "", "/", "openai/", "builtin/nobody", "served:x"]
)
def test_an_unknown_name_is_refused_with_all_that_are_known(text):
    with pytest.raises(CarinaError, match=rf"model {text!r}: unknown") as caught:
        parse_model_name(text)
    for form in ("builtin/oracle", "control/uniform", "hf:PATH", "onnx:PATH", "sam:PATH", "PROVIDER/NAME"):
        assert form in str(caught.value)


@pytest.mark.parametrize("text", ["unet:weights", "weights", "sam:", ":weights", ""])
def test_an_unknown_segmenter_is_refused_with_those_that_are_known(text):
    for function in (models.open, identify_model):
        with pytest.raises(CarinaError, match=r"outline regions: sam:PATH\.$"):
            function(text, needs="segments")


@pytest.mark.parametrize(
    ("text", "needs", "message"),
    [
        ("onnx:x", "maps", "onnx: models answer questions about images; they make no localisation maps. .*biovil:PATH"),
        ("sam:x", "chat", "sam: models outline regions; they answer no questions about images. .*onnx:PATH"),
        ("hf:x", "text", "hf: models .*; they answer no text prompts. Models that answer text prompts: PROVIDER/NAME"),
        ("openai/gpt-5", "maps", "served models .*; they make no localisation maps. .*biovil:PATH"),
        ("builtin/oracle", "maps", "models such as builtin/oracle .*; they make no localisation maps"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_do_what_is_needed_is_refused_with_those_that_can(text, needs, message):
    with pytest.raises(CarinaError, match=message):
        parse_model_name(text, needs=needs)


def test_the_display_name_says_nothing_about_the_machine(folder, tmp_path):
    assert parse_model_name(f"sam:{folder}").name == "sam:sam-x"
    assert parse_model_name(f"sam:{tmp_path / 'none'}").name == f"sam:{tmp_path / 'none'}"
    assert parse_model_name("openai/gpt-5").name == "openai/gpt-5"


def test_a_kind_is_registered_by_a_decorator_and_gets_its_options(kinds):
    @model_kind("first-option", capabilities=["chat"])
    class FirstOption:
        """Chooses the first option.

        More about it.
        """

        def __init__(self, name, options):
            self.location, self.seed = name.location, options.seed

    assert kinds["first-option"].description == "Chooses the first option."
    assert kinds["first-option"].form == "first-option:PATH"
    opened = models.open("first-option:here", seed=4)
    assert (opened.location, opened.seed) == ("here", 4)


def test_names_with_a_slash_are_left_to_served_models():
    with pytest.raises(ValueError, match="mylab/model"):
        model_kind("mylab/model", capabilities=["chat"])


@pytest.fixture
def kinds(monkeypatch):
    """The registry, without what a test adds to it."""
    MODELS.names()
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))
    return MODELS


def test_every_kind_says_what_it_is():
    for name, kind in MODELS.entries().items():
        assert kind.description, name
        assert kind.capabilities, name


# ---- folders of weights ---------------------------------------------------------------------------------------------


def test_an_identity_says_nothing_about_the_machine(folder):
    pytest.importorskip("torch")
    identity = identify_model(f"sam:{folder}")
    assert identity.name == "sam:sam-x"
    assert identity.weights == hashlib.sha256(b"weights").hexdigest()


def test_an_identity_distinguishes_weights_and_settings(folder):
    pytest.importorskip("torch")
    before = identify_model(f"sam:{folder}")
    (folder / "preprocessor_config.json").write_text('{"size": 1}')
    after = identify_model(f"sam:{folder}")
    assert (after.weights, after.settings != before.settings) == (before.weights, True)
    (folder / "model.safetensors").write_bytes(b"other")
    assert identify_model(f"sam:{folder}").weights != before.weights


def test_the_checksum_of_sharded_weights_covers_every_part(folder):
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
        models.open(f"sam:{folder}", needs="segments")


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
        models.open(f"sam:{folder}", needs="segments")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(CarinaError, match="none: no such folder"):
        models.open(f"sam:{tmp_path / 'none'}", needs="segments")


def test_models_outside_the_sam_family_are_refused(folder):
    (folder / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(
        CarinaError, match=f"model_type 'clip' is not of the SAM family; known are {', '.join(CLASSES)}"
    ):
        identify_model(f"sam:{folder}")


def test_a_config_that_is_no_json_object_is_refused_by_file(folder):
    (folder / "config.json").write_text("[1]")
    with pytest.raises(CarinaError, match=r"config\.json: not a JSON object"):
        models.open(f"sam:{folder}", needs="segments")


def test_without_the_extra_one_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda name: None if name == "torch" else sys)
    for function in (models.open, identify_model):
        with pytest.raises(
            CarinaError,
            match=r"^this needs torch: pip install 'carina\[torch\]', in a clone pip install -e '\.\[torch\]'$",
        ):
            function(f"sam:{folder}", needs="segments")

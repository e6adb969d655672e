"""Names of models in this process, and folders of weights: what is refused, and in which words."""

import json
import shutil
import sys

import pytest

from carina import models
from carina.models import Sampling, extra
from carina.models.hf import HfModel
from carina.store.errors import CarinaError

SAMPLING = Sampling(max_tokens=4)


@pytest.fixture
def copied(folder, tmp_path):
    """A model to spoil."""
    return shutil.copytree(folder("llava"), tmp_path / "spoilt")


@pytest.fixture
def cache(tiny, tmp_path, monkeypatch):
    """The hub's downloads, none yet."""
    del tiny  # torch is there, and the hub's library with it
    import huggingface_hub as hub

    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def refused(named, **options):
    with pytest.raises(CarinaError) as caught:
        HfModel.open(str(named), sampling=SAMPLING, **options)
    return str(caught.value)


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llava", "hf", "hf:", "onnx:", "sam:weights", ":x", ""])
def test_names_that_answer_no_questions_are_refused_with_those_that_do(name):
    with pytest.raises(CarinaError, match=r"hf:PATH or hf:OWNER/NAME, onnx:PATH"):
        models.open(name, sampling=SAMPLING)


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(
        CarinaError, match=r"this needs torch and transformers: pip install 'carina\[torch\]'"
    ):
        models.open(f"hf:{tmp_path}", sampling=SAMPLING)


def test_the_package_is_imported_without_torch():
    """Names are checked, and other models run, where torch is not installed."""
    import subprocess

    code = (
        "import sys, carina.models.hf, carina.runs.classifier; "
        "sys.exit('torch' in sys.modules or 'onnxruntime' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- folders --------------------------------------------------------------------------------------------------------


def test_a_missing_folder_is_named(tmp_path, tiny):
    del tiny  # torch is there
    assert refused(tmp_path / "none") == (
        f"{tmp_path / 'none'}: no such folder; expected one with config.json and model.safetensors as transformers "
        "saves, or the id of a model on the hub, OWNER/NAME"
    )


def test_a_model_that_was_not_downloaded_says_how_to_get_it(cache):
    assert refused("someone/vlm-7b") == (
        f"hf:someone/vlm-7b: neither a folder nor among the downloads in {cache}; "
        "get it with: hf download someone/vlm-7b"
    )


def test_a_downloaded_model_is_opened_by_its_id(cache, folder, turn, pictures):
    """The cache's own layout: a reference names a commit, a snapshot holds its files."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = cache / "models--someone--vlm"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    shutil.copytree(folder("llava"), repository / "snapshots" / commit)
    opened = models.open("hf:someone/vlm", sampling=SAMPLING)
    assert opened.name == "hf:someone/vlm"
    (reply,) = opened.answer([turn("a", ("It?", ("v1",)))], pictures)
    assert reply.error is None


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(copied, name):
    (copied / name).unlink()
    assert refused(copied).startswith(f"{copied / name}: missing")


def test_pickled_weights_are_not_read(copied, tmp_path):
    """Neither instead of safetensors nor beside them; a pickle that is loaded leaves a mark."""
    import pickle

    mark = tmp_path / "mark"

    class Trap:
        def __reduce__(self):
            return (mark.touch, ())

    pickled = copied / "pytorch_model.bin"
    pickled.write_bytes(pickle.dumps(Trap()))
    assert models.open(f"hf:{copied}", sampling=SAMPLING).name == "hf:spoilt"
    (copied / "model.safetensors").unlink()
    assert refused(copied) == (
        f"{pickled}: pickled weights can run code and are not read; expected model.safetensors (safetensors)"
    )
    assert not mark.exists()


def test_damaged_weights_are_refused_with_their_folder(copied):
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert refused(copied).startswith(f"{copied}: cannot be loaded as a model that takes images and text: ")


def test_missing_weights_are_refused(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    name = next(name for name in sorted(weights) if "q_proj" in name)
    del weights[name]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    message = refused(copied)
    assert message.startswith(
        f"{copied}: 1 weights of LlavaForConditionalGeneration are missing or of another shape"
    )
    assert "q_proj" in message


def test_a_model_that_takes_no_images_is_refused(copied):
    config = {"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1}
    (copied / "config.json").write_text(json.dumps(config))
    assert str(copied) in refused(copied)


@pytest.mark.parametrize("name", ["tokenizer.json", "processor_config.json"])
def test_a_missing_processor_is_refused(copied, name):
    (copied / name).unlink()
    assert refused(copied).startswith(f"{copied}: ")


# ---- code that comes with a model -----------------------------------------------------------------------------------


@pytest.fixture
def with_code(copied):
    """A model of an unknown kind whose code leaves a mark when it is run."""
    config = json.loads((copied / "config.json").read_text())
    config |= {"model_type": "own_kind", "auto_map": {"AutoConfig": "own.OwnConfig"}}
    (copied / "config.json").write_text(json.dumps(config))
    (copied / "own.py").write_text(
        f"from pathlib import Path\nPath({str(copied / 'mark')!r}).touch()\nraise ImportError('was run')\n"
    )
    return copied


def test_code_of_a_model_is_not_run(with_code):
    assert refused(with_code) == (
        f"{with_code / 'config.json'}: model_type 'own_kind': it comes with its own code, which runs only with "
        "--trust-remote-code"
    )
    assert not (with_code / "mark").exists()


def test_code_of_a_trusted_model_is_run(with_code, tmp_path, monkeypatch):
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert "was run" in refused(with_code, trust_remote_code=True)
    assert (with_code / "mark").exists()


def test_an_unknown_model_type_is_refused(copied):
    config = json.loads((copied / "config.json").read_text()) | {"model_type": "from_the_future"}
    (copied / "config.json").write_text(json.dumps(config))
    assert "model_type 'from_the_future': transformers 5." in refused(copied)


# ---- device and precision -------------------------------------------------------------------------------------------


def test_unknown_devices_and_dtypes_are_refused(folder):
    torch = pytest.importorskip("torch")
    path = folder("llava")
    assert refused(path, device="abacus") == "device 'abacus': unknown; expected cpu, cuda, cuda:1 or mps"
    if not torch.cuda.is_available():
        assert refused(path, device="cuda:1").startswith("device 'cuda:1': not on this machine")
    assert refused(path, dtype="int4") == "dtype 'int4': unknown; known are auto, float32, bfloat16, float16"


def test_a_model_opens_in_half_precision(folder, turn, pictures):
    torch = pytest.importorskip("torch")
    opened = HfModel.open(str(folder("llava")), sampling=SAMPLING, device="cpu", dtype="bfloat16")
    assert {parameter.dtype for parameter in opened._loaded.model.parameters()} == {torch.bfloat16}
    (reply,) = opened.answer([turn("a", ("It?", ("v1",)))], pictures)
    assert (reply.error, reply.output_tokens) == (None, 4)


def test_loading_restores_the_verbosity_of_transformers(folder):
    from transformers.utils import logging

    before = logging.get_verbosity()
    models.open(f"hf:{folder('llava')}", sampling=SAMPLING)
    assert logging.get_verbosity() == before

"""Checkpoints as their authors save them become models that open."""

import collections
import shutil

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402

from carina.models.clip.convert import convert_checkpoint  # noqa: E402
from carina.models.clip.kinds import open_clip_model  # noqa: E402


def parts(state, *names):
    return {
        name: {
            key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")
        }
        for name in names
    }


SAVED = {
    "biovil": collections.OrderedDict,
    "biovil-t": collections.OrderedDict,
    "gloria": lambda state: {"state_dict": state, "epoch": 3},
    "afloc": lambda state: {"state_dict": state, "epoch": 3},
    "carzero": lambda state: {"state_dict": state, "epoch": 3},
    "medklip": lambda state: {"model": {f"module.{key}": value for key, value in state.items()}},
    "mavl": lambda state: {"model": {f"module.{key}": value for key, value in state.items()}},
    "kad": lambda state: parts(state, "image_encoder", "text_encoder", "model"),
}
"""How each is kept in its file."""


@pytest.mark.parametrize("kind", SAVED)
def test_a_checkpoint_becomes_a_model_that_opens(published, opened, tmp_path, kind):
    there = published(kind)
    torch.save(SAVED[kind](load_file(there / "model.safetensors")), tmp_path / "checkpoint.pth")
    for file in there.iterdir():
        if file.suffix in {".txt", ".json"}:
            shutil.copyfile(file, tmp_path / file.name)
    folder = convert_checkpoint(tmp_path / "checkpoint.pth", tmp_path / "made", kind).path.parent
    if (there / "text.safetensors").exists():
        torch.save(load_file(there / "text.safetensors"), tmp_path / "pytorch_model.bin")
        convert_checkpoint(tmp_path / "pytorch_model.bin", folder / "text.safetensors", "bert")
    prompts = ["pneumonia"] if kind in {"medklip", "mavl"} else ["there is mass"]
    model = open_clip_model(f"{kind}:{folder}")
    torch.testing.assert_close(
        model.encode_text(prompts).pooled, opened(kind).encode_text(prompts).pooled, rtol=0, atol=0
    )

"""Models by name: what is found, what is missing, and ensembles."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from carina.models import identify_model
from carina.models.clip.kinds import KINDS, open_clip_model, open_ensemble
from carina.store.errors import CarinaError


@pytest.mark.parametrize("name", ["chexzero", "chexzero:", "nothing:weights", ":weights", ""])
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    for call in (open_clip_model, identify_model, open_ensemble):
        with pytest.raises(CarinaError, match=r"unknown\. .*biomedclip:PATH, .*siglip:PATH"):
            call(name)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_missing_weights_are_named_with_what_to_download(tmp_path, kind):
    with pytest.raises(
        CarinaError, match=r"model\.safetensors: missing; .*\bdownload .*\b(here|this folder)"
    ):
        open_clip_model(f"{kind}:{tmp_path}")
    with pytest.raises(CarinaError, match=r"nowhere.model\.safetensors: missing; "):
        identify_model(f"{kind}:{tmp_path / 'nowhere'}")


def test_pickled_weights_are_not_read(tmp_path):
    (tmp_path / "best_64.pt").write_bytes(b"")
    with pytest.raises(
        CarinaError,
        match=r"best_64\.pt: pickled weights can run code and are not read; make safetensors of them",
    ):
        open_clip_model(f"chexzero:{tmp_path}")


def test_the_identity_of_a_model_depends_only_on_its_files(published):
    folder = published("biomedclip")
    identity = identify_model(f"biomedclip:{folder}")
    assert identity.name == "biomedclip:tiny-biomedclip"
    assert identity == identify_model(f"biomedclip:{folder}/../tiny-biomedclip")
    assert identity == open_clip_model(f"biomedclip:{folder}").identity


def test_the_settings_of_a_name_change_with_its_vocabulary(published, tmp_path):
    folder = shutil.copytree(published("biomedclip"), tmp_path / "copy")
    before = identify_model(f"biomedclip:{folder}")
    with (folder / "vocab.txt").open("a") as file:
        file.write("more\n")
    after = identify_model(f"biomedclip:{folder}")
    assert (before.name, before.weights) == (after.name, after.weights)
    assert before.settings != after.settings


def test_weights_in_parts_are_read(tiny_clip, published, tmp_path):
    import json

    from safetensors.torch import load_file

    folder = shutil.copytree(published("clip"), tmp_path / "parts")
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(state)
    half = len(names) // 2
    parts = {"one.safetensors": names[:half], "two.safetensors": names[half:]}
    for part, keys in parts.items():
        tiny_clip.put(folder, {key: state[key] for key in keys}, part)
    index = {"weight_map": {key: part for part, keys in parts.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    whole, divided = open_clip_model(f"clip:{published('clip')}"), open_clip_model(f"clip:{folder}")
    assert divided.identity.name == "clip:parts"
    assert (divided.encode_text(["mass"]).pooled == whole.encode_text(["mass"]).pooled).all()
    tiny_clip.put(folder, {key: state[key] for key in names[half + 1 :]}, "two.safetensors")
    with pytest.raises(CarinaError, match=f"parts: weight {names[half]} is missing"):
        open_clip_model(f"clip:{folder}")


# ---- ensembles ----


@pytest.fixture(scope="module")
def several(tiny_clip, tmp_path_factory):
    """Three checkpoints of CheXzero in one folder."""
    path = tmp_path_factory.mktemp("several") / "chexzero"
    for seed in (0, 1, 2):
        tiny_clip.save("chexzero", path, seed=seed)
        (path / "model.safetensors").rename(path / f"best_{seed}.safetensors")
    return path


def test_an_ensemble_is_a_model_for_every_checkpoint(several):
    models = open_ensemble(f"chexzero:{several}")
    assert [model.identity.name for model in models] == [
        f"chexzero:chexzero/best_{seed}" for seed in (0, 1, 2)
    ]
    assert len({model.identity.weights for model in models}) == 3
    with pytest.raises(
        CarinaError, match=r"weights of several models; name one, chexzero:.*best_0\.safetensors"
    ):
        open_clip_model(f"chexzero:{several}")
    one = open_clip_model(f"chexzero:{several / 'best_1.safetensors'}")
    assert one.identity == models[1].identity


def test_members_of_an_ensemble_answer_differently(several):
    import torch

    from carina.models.clip.recognition import compute_presence, list_prompts

    image = np.random.default_rng(0).integers(0, 256, (80, 60), dtype=np.uint8)
    probabilities = []
    for model in open_ensemble(f"chexzero:{several}"):
        pair = model.prompts("mass")
        images = model.encode_image(torch.from_numpy(model.prepare(image))[None])
        probabilities.append(
            compute_presence(model.score(images, model.encode_text(list_prompts(pair))), pair)
        )
    assert len({float(one) for one in probabilities}) == 3


def test_a_folder_with_one_model_is_an_ensemble_of_one(published):
    (model,) = open_ensemble(f"medclip:{published('medclip-swin')}")
    assert model.identity.name == "medclip:tiny-medclip-swin"


# ---- recognition ----


def test_presence_is_the_softmax_of_a_pair():
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    from carina.models.clip.interface import PromptPair
    from carina.models.clip.recognition import compute_presence

    pair = PromptPair(("a", "b"), ("c",))
    scores = torch.tensor([[1.0, 3.0, 0.5], [0.0, 0.0, 0.0]], dtype=torch.float64)
    e = np.exp
    np.testing.assert_allclose(compute_presence(scores, pair), [e(2) / (e(2) + e(0.5)), 0.5])
    best = PromptPair(("a", "b"), ("c",), several="max")
    np.testing.assert_allclose(compute_presence(scores, best)[0], e(3) / (e(3) + e(0.5)))
    np.testing.assert_allclose(compute_presence(scores[:, :1], PromptPair(("a",)))[0], e(1) / (1 + e(1)))
    with pytest.raises(ValueError, match="3 scores of 2 prompts"):
        compute_presence(scores, PromptPair(("a",), ("b",)))


# ---- without the extra ----


def test_nothing_is_imported_before_a_model_is_opened():
    code = (
        "import sys, carina.models.clip.kinds, carina.models.clip.interface, carina.models.clip.recognition, "
        "carina.models.clip.preprocessing, carina.models.clip.model_folder, carina.models.clip.convert; "
        "print(sorted({'torch', 'transformers', 'safetensors'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_how_to_install_it(published, monkeypatch):
    from carina.models import extra

    folder = published("clip")
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda name: None if name == "torch" else sys)
    for call in (open_clip_model, identify_model):
        with pytest.raises(CarinaError, match=r"this needs torch: pip install 'carina\[torch\]'"):
            call(f"clip:{folder}")

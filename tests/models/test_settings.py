"""Settings of models: sizes that no model has are refused before anything is created from them."""

import json

import pytest

from carina.models.weights import read_settings
from carina.store.errors import CarinaError


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("num_hidden_layers", 2**63),
        ("num_hidden_layers", 100_000),
        ("num_hidden_layers", -(2**63)),
        ("hidden_size", 2**40),
        ("vocab_size", 10**30),
        ("image_size", 10**9),
        ("num_attention_heads", 2**31),
    ],
)
def test_a_size_that_no_model_has_is_refused_with_file_and_key(tmp_path, place, number):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "clip", "text_config": {place: number}}))
    with pytest.raises(CarinaError, match=rf"config\.json: text_config\.{place} is "):
        read_settings(path)


def test_settings_of_published_models_are_read(tmp_path):
    settings = {
        "model_max_length": 10**30,
        "vision_feature_layer": -2,
        "vocab_size": 262_208,
        "max_pixels": 12_845_056,
        "num_hidden_layers": 126,
        "size": {"height": 896, "width": 896},
    }
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert read_settings(tmp_path / "config.json") == settings

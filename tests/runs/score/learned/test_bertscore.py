"""BERTScore by a small encoder with random weights."""

import shutil

import pytest

from carina.runs.score.learned.bertscore import open_bertscore
from carina.store.errors import CarinaError
from carina.store.files import sha256


def test_identical_texts_score_1_and_others_less(bert):
    metric = open_bertscore(bert)
    assert metric.columns == ("bertscore",)
    assert metric.weights == sha256(bert / "model.safetensors")[:16]
    pairs = [
        ("mild edema .", "mild edema ."),
        ("mild edema .", "no effusion"),
        ("no effusion", "mild edema ."),
    ]
    (same,), (other,), (back,) = metric.score(pairs)
    assert same == pytest.approx(1, abs=1e-5)
    assert 0 <= other < 0.99
    assert back == pytest.approx(other, abs=2e-6)


def test_bertscore_is_the_f1_of_the_best_matches(bert, tiny):
    """Worked out again from the model's own hidden states, a token at a time."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(bert).eval()
    states = []
    for words in (("mild", "left", "edema"), ("effusion",)):
        row = torch.tensor([[tiny.WORDS.index(word) for word in ("[CLS]", *words, "[SEP]")]])
        with torch.no_grad():
            states.append(model(row).last_hidden_state[0, 1:-1])
    cosines = [float(torch.cosine_similarity(one, states[1][0], dim=0)) for one in states[0]]
    recall, precision = sum(cosines) / 3, max(cosines)
    expected = 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0
    # Beside other texts of other lengths, which are filled up in the same batch.
    score = open_bertscore(bert).score
    ((found,), _) = score([("mild left edema", "effusion"), ("no mild edema in the left lung .", "heart")])
    assert found == pytest.approx(expected, abs=2e-6)
    assert found > 0


def test_long_texts_are_truncated_to_the_length_of_the_model(bert):
    ((figure,),) = open_bertscore(bert).score([("mild edema " * 200, "mild edema " * 200)])
    assert figure == pytest.approx(1, abs=1e-5)


def test_missing_weights_are_an_error(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(bert, tmp_path / "model")
    state = load_file(bert / "model.safetensors")
    lacking = {name: value for name, value in state.items() if not name.startswith("pooler.")}
    save_file(lacking, folder / "model.safetensors", metadata={"format": "pt"})
    assert open_bertscore(folder).score([("edema", "edema")]) == [(pytest.approx(1),)]
    del lacking["encoder.layer.0.output.dense.weight"]
    save_file(lacking, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CarinaError, match=r"encoder\.layer\.0\.output\.dense\.weight is missing"):
        open_bertscore(folder)


def test_pickled_weights_are_not_read(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CarinaError, match="pickled weights"):
        open_bertscore(folder)

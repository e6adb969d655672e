"""Metrics with weights: offered where these lie here, and a sentence where they do not."""

import pytest

from carina.run.score import optional
from carina.run.score.optional import BERTSCORE_MODEL, text_metrics, why_not

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "no", "mild", "edema", "effusion", "left", "."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    directory = tmp_path_factory.mktemp("weights")
    (directory / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = transformers.BertTokenizer(str(directory / "vocab.txt"))
    tokenizer.save_pretrained(directory)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(directory)
    return directory


@pytest.fixture
def weights(folder, monkeypatch):
    monkeypatch.setenv(BERTSCORE_MODEL, str(folder))
    return folder


def test_without_weights_nothing_is_offered_and_the_reason_is_named(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.delenv(BERTSCORE_MODEL, raising=False)
    assert text_metrics() == {}
    assert BERTSCORE_MODEL in why_not()
    monkeypatch.setenv(BERTSCORE_MODEL, str(tmp_path))
    assert text_metrics() == {}
    assert "config.json" in why_not()
    assert str(tmp_path) in why_not()


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(optional.importlib.util, "find_spec", lambda _: None)
    assert text_metrics() == {}
    assert "carina[torch]" in why_not()


def test_the_same_words_match_wholly_and_others_less(weights):
    assert weights.is_dir()
    assert why_not() is None
    (same, other, empty, back) = text_metrics()["bertscore"](
        [
            ("mild edema .", "mild edema ."),
            ("mild edema .", "no effusion"),
            ("mild edema .", ""),
            ("no effusion", "mild edema ."),
        ]
    )
    assert same == pytest.approx(1, abs=1e-5)
    assert 0 <= other < 0.99
    assert empty == 0.0
    assert back == pytest.approx(other, abs=1e-6)


def test_it_is_the_mean_of_the_best_matches(weights):
    """Worked out again from the model's own hidden states, a token at a time."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(weights).eval()
    key, answer = [WORDS.index(word) for word in ("mild", "left", "edema")], [WORDS.index("effusion")]
    states = []
    for ids in (key, answer):
        row = torch.tensor([[WORDS.index("[CLS]"), *ids, WORDS.index("[SEP]")]])
        with torch.no_grad():
            states.append(model(row).last_hidden_state[0, 1:-1])
    cosines = [float(torch.cosine_similarity(one, states[1][0], dim=0)) for one in states[0]]
    recall, precision = sum(cosines) / 3, max(cosines)
    expected = 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0
    (found,) = text_metrics()["bertscore"]([("mild left edema", "effusion")])
    assert found == pytest.approx(expected, abs=1e-5)
    assert found > 0


def test_long_texts_are_cut_to_what_the_model_takes(weights):
    assert weights.is_dir()
    (figure,) = text_metrics()["bertscore"]([("mild edema " * 200, "mild edema " * 200)])
    assert figure == pytest.approx(1, abs=1e-5)

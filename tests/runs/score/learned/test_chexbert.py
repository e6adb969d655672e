"""F1 of CheXbert's labels: by weights that can be read, and by random ones against scikit-learn."""

import pickle
import shutil

import numpy as np
import pytest

from carina.runs.score.learned.chexbert import LABELS, open_chexbert
from carina.store.errors import CarinaError
from carina.store.files import sha256


def test_labels_are_those_that_the_words_decide(chexbert):
    """As `readable_heads` says; what is uncertain counts as there, and two texts without labels agree."""
    metric = open_chexbert(chexbert)
    assert metric.columns == ("chexbert_f1",)
    assert metric.weights == sha256(chexbert / "chexbert.pth")[:16]
    expected = {
        ("edema", "mild edema"): 1.0,
        ("edema", "edema effusion"): 2 / 3,
        ("edema effusion", "effusion"): 2 / 3,
        ("edema", "maybe edema"): 1.0,
        ("edema", "no edema"): 0.0,
        ("edema", "effusion"): 0.0,
        ("no edema", "the heart"): 1.0,
        ("no edema", "edema"): 0.0,
        ("clear", "clear edema"): 2 / 3,
        ("the heart", "clear"): 0.0,
    }
    assert dict(zip(expected, metric.score(list(expected)), strict=True)) == {
        pair: (pytest.approx(figure),) for pair, figure in expected.items()
    }


def test_random_weights_agree_with_scikit_learn(tiny, tmp_path):
    """Labels by transformers and torch alone, one text at a time; figures as `f1_score` has them for samples."""
    import torch
    import transformers
    from sklearn.metrics import f1_score

    torch.manual_seed(3)
    made = tiny.config()
    made.initializer_range = 1.0  # enough for texts to differ
    bert = transformers.BertModel(made).eval()
    heads = [torch.nn.Linear(16, 2 if number == 13 else 4) for number in range(14)]
    state = {f"module.bert.{name}": value for name, value in bert.state_dict().items()}
    for number, head in enumerate(heads):
        state |= {f"module.linear_heads.{number}.{name}": value for name, value in head.state_dict().items()}
    words = tiny.WORDS[5:]
    drawn = np.random.default_rng(5)
    texts = [" ".join(drawn.choice(words, size=drawn.integers(1, 12))) for _ in range(80)]

    def labels(text):
        ids = [tiny.WORDS.index(word) for word in ("[CLS]", *text.split(), "[SEP]")]
        with torch.no_grad():
            first = bert(torch.tensor([ids])).last_hidden_state[:, 0]
            return [int(head(first).argmax()) in (1, 3) for head in heads]

    texts = [text for text in texts if "##" not in text]
    keys, answers = texts[::2][: len(texts) // 2], texts[1::2]
    expected = [
        f1_score([labels(key)], [labels(answer)], average="samples", zero_division=1.0)
        for key, answer in zip(keys, answers, strict=True)
    ]
    assert len({round(one, 3) for one in expected}) > 3
    metric = open_chexbert(tiny.save_chexbert(tmp_path / "model", state))
    assert [one for (one,) in metric.score(list(zip(keys, answers, strict=True)))] == pytest.approx(expected)


def test_all_layouts_are_the_same_model(tiny, chexbert, tmp_path):
    import torch
    from safetensors.torch import save_file

    pairs = [("edema", "edema effusion"), ("no edema", "clear")]
    expected = open_chexbert(chexbert).score(pairs)
    state = tiny.chexbert_state()
    old = tiny.save_tokenizer(tmp_path / "old")
    # As torch wrote before 1.6, and with the numbers that transformers once kept among the weights.
    with_ids = state | {"module.bert.embeddings.position_ids": torch.arange(32)[None]}
    torch.save({"model_state_dict": with_ids}, old / "chexbert.pth", _use_new_zipfile_serialization=False)
    safe = tiny.save_tokenizer(tmp_path / "safe")
    save_file(state, safe / "model.safetensors")
    for folder in (old, safe):
        assert open_chexbert(folder).score(pairs) == expected
    # The model.safetensors of bert-base-uncased may lie beside the checkpoint.
    save_file({"bert": torch.zeros(1)}, old / "model.safetensors")
    assert open_chexbert(old).score(pairs) == expected


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda state: state.pop("module.linear_heads.13.bias"), "linear_heads.13.bias is missing"),
        (
            lambda state: state.pop("module.bert.encoder.layer.0.attention.self.key.bias"),
            "bert.encoder.layer.0.attention.self.key.bias is missing",
        ),
        (
            lambda state: state.update({"module.linear_heads.14.bias": state["module.linear_heads.0.bias"]}),
            "linear_heads.14.bias is not known",
        ),
        (
            lambda state: state.update(
                {"module.linear_heads.13.weight": state["module.linear_heads.0.weight"]}
            ),
            r"linear_heads.13.weight has the shape (4, 16), expected (2, 16)",
        ),
    ],
)
def test_a_weight_that_does_not_fit_is_named(tiny, tmp_path, change, told):
    state = tiny.chexbert_state()
    change(state)
    folder = tiny.save_chexbert(tmp_path / "model", state)
    with pytest.raises(CarinaError) as error:
        open_chexbert(folder)
    assert told in str(error.value)
    assert "chexbert.pth" in str(error.value)


class _Code:
    def __reduce__(self):
        return print, ("run",)


def test_code_in_a_checkpoint_is_not_run(chexbert, tmp_path, capsys):
    import torch

    folder = shutil.copytree(chexbert, tmp_path / "model")
    torch.save({"model_state_dict": _Code()}, folder / "chexbert.pth")
    with pytest.raises(CarinaError, match=r"chexbert\.pth: not weights that can be read safely"):
        open_chexbert(folder)
    (folder / "chexbert.pth").write_bytes(pickle.dumps(_Code()))
    with pytest.raises(CarinaError, match=r"chexbert\.pth: not weights"):
        open_chexbert(folder)
    torch.save([1, 2], folder / "chexbert.pth")
    with pytest.raises(CarinaError, match="expected tensors by name"):
        open_chexbert(folder)
    assert capsys.readouterr().out == ""


def test_missing_files_are_named(chexbert, tmp_path):
    folder = shutil.copytree(chexbert, tmp_path / "model")
    (folder / "chexbert.pth").unlink()
    with pytest.raises(CarinaError, match=r"chexbert\.pth: missing; expected the published checkpoint"):
        open_chexbert(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CarinaError, match=r"config\.json: missing; expected the configuration"):
        open_chexbert(folder)
    assert len(LABELS) == 14


def test_loading_keeps_the_random_state(chexbert):
    import torch

    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    open_chexbert(chexbert)
    assert torch.equal(torch.rand(3), before)

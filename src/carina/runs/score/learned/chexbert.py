"""CheXbert: 14 labels of a report by a BERT with a head for each, and F1 of the labels of two texts.

The checkpoint is the one that its authors publish. As usual in F1-CheXbert, uncertain labels count as present, and
"No Finding" is a label like any other. The figure is that of one pair of texts; a mean over answers is example-based,
not the micro or macro average over labels that some papers give.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from carina.models.extra import require
from carina.models.weights import CONFIG, WEIGHTS
from carina.runs.score.learned.metric import Pair, TextMetric, f1
from carina.runs.score.learned.weights import (
    State,
    encoder_in,
    present,
    read_state,
    refuse_others,
    short_sha256,
    take,
    tokenizer_in,
)

LABELS: Final = (
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
    "No Finding",
)
"""Labels in the order of the heads."""
CHECKPOINT: Final = "chexbert.pth"
_CLASSES: Final = (*(4,) * 13, 2)
"""Blank, positive, negative and uncertain; blank and positive for the last label."""
_PRESENT: Final = frozenset({1, 3})
"""Positive and uncertain."""
_PARALLEL: Final = "module."
"""Prefix of every name in checkpoints that were trained on several devices."""
_BATCH: Final = 32


def open_chexbert(folder: Path) -> TextMetric:
    """Load CheXbert from a folder with `config.json` and the tokenizer of bert-base-uncased beside the checkpoint.

    `chexbert.pth` as published, or the same names in `model.safetensors`; the former counts where both are there,
    since the latter may be bert-base-uncased itself.
    """
    present(folder, CONFIG, needed="the configuration of bert-base-uncased")
    path = present(
        folder, CHECKPOINT, WEIGHTS, needed=f"the published checkpoint, or {WEIGHTS} with its names"
    )
    tokenizer = tokenizer_in(folder)
    encoder, heads = _model(folder, path)

    def score(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        found = _labels(tokenizer, encoder, heads, {text for pair in pairs for text in pair})
        return [(_agreement(found[key], found[answer]),) for key, answer in pairs]

    return TextMetric("CheXbert", short_sha256(path), ("chexbert_f1",), score)


def _model(folder: Path, path: Path) -> tuple[Any, list[tuple[Any, Any]]]:
    """The encoder, and weight and bias of every head."""
    state: State = {name.removeprefix(_PARALLEL): value for name, value in read_state(path).items()}
    encoder = encoder_in(folder, state, "bert.", path)
    heads = []
    for number, classes in enumerate(_CLASSES):
        weight, bias = f"linear_heads.{number}.weight", f"linear_heads.{number}.bias"
        found = take(state, {weight: (classes, encoder.config.hidden_size), bias: (classes,)}, path)
        heads.append((found[weight], found[bias]))
    refuse_others(state, path)
    return encoder, heads


def _labels(tokenizer: Any, encoder: Any, heads: list[tuple[Any, Any]], texts: set[str]) -> dict[str, Any]:  # noqa: ANN401
    """By text, the labels that are present or uncertain."""
    (torch,) = require("torch")
    found: dict[str, frozenset[str]] = {}
    ordered = sorted(texts, key=lambda text: (len(text), text))
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        coded = tokenizer(
            [" ".join(text.split()) for text in batch],
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=encoder.config.max_position_embeddings,
        )
        with torch.inference_mode():
            first = encoder(**coded).last_hidden_state[:, 0]
            classes = [
                torch.nn.functional.linear(first, weight, bias).argmax(dim=1).tolist()
                for weight, bias in heads
            ]
        for number, text in enumerate(batch):
            found[text] = frozenset(
                label
                for label, predicted in zip(LABELS, classes, strict=True)
                if predicted[number] in _PRESENT
            )
    return found


def _agreement(key: frozenset[str], answer: frozenset[str]) -> float:
    """F1 of the labels; two texts without any label agree."""
    return f1(key, answer) if key or answer else 1.0

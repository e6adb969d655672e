"""Text metrics that need the weights of a model, offered only where these lie on this machine; nothing is downloaded.

BERTScore is here: greedy cosine matching of the last hidden states, as F1, neither weighted by rarity nor rescaled with
a baseline. Figures compare only among runs with the same weights, and not with those of the `bert_score` package, which
takes a layer of its own choice for every model. RadGraph and CheXbert are not: their labels need their own weights.
"""

import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

TextMetric = Callable[[Sequence[tuple[str, str]]], list[float]]
"""From pairs of key and answer to a figure each, from 0 to 1 for texts that have anything in common."""
BERTSCORE_MODEL: Final = "CARINA_BERTSCORE_MODEL"
"""Environment variable: the folder of a transformers model with its tokenizer and weights in safetensors."""
_BATCH: Final = 32
_TOKENS: Final = 512


def text_metrics() -> dict[str, TextMetric]:
    """The metrics that can be computed here, by name."""
    return {} if _missing() else {"bertscore": bertscore}


def why_not() -> str | None:
    """What is missing for the metrics that are not offered; None where all are."""
    missing = _missing()
    return f"BERTScore is not computed: {missing}." if missing else None


def _missing() -> str | None:
    lacking = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if lacking:
        return f"{' and '.join(lacking)} not installed (pip install 'carina[torch]')"
    folder = os.environ.get(BERTSCORE_MODEL)
    if not folder:
        return f"the environment variable {BERTSCORE_MODEL} names no folder with a model"
    absent = [name for name in ("config.json", "model.safetensors") if not (Path(folder) / name).is_file()]
    return f"{folder} ({BERTSCORE_MODEL}) has no {' and no '.join(absent)}" if absent else None


def bertscore(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """F1 of the best matches between the tokens of key and answer; 0 where one of them has no token."""
    tokenizer, model = _loaded(os.environ[BERTSCORE_MODEL])
    vectors = _embedded(tokenizer, model, sorted({text for pair in pairs for text in pair}))
    return [_matched(vectors[key], vectors[answer]) for key, answer in pairs]


@cache
def _loaded(folder: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415 - optional, and slow to import

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    return tokenizer, model.eval()


def _embedded(tokenizer: Any, model: Any, texts: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401
    """By text, the directions of its tokens in the last layer, without the marks at its ends."""
    import torch  # noqa: PLC0415

    longest = min(_TOKENS, model.config.max_position_embeddings - 2)
    found: dict[str, Any] = {}
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        coded = tokenizer(
            batch,
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=longest,
            return_special_tokens_mask=True,
        )
        special = coded.pop("special_tokens_mask").bool()
        with torch.no_grad():
            hidden = model(**coded).last_hidden_state
        directions = torch.nn.functional.normalize(hidden, dim=-1)
        kept = coded["attention_mask"].bool() & ~special
        found.update({text: directions[n][kept[n]] for n, text in enumerate(batch)})
    return found


def _matched(key: Any, answer: Any) -> float:  # noqa: ANN401
    if not len(key) or not len(answer):
        return 0.0
    alike = key @ answer.T
    recall, precision = float(alike.max(dim=1).values.mean()), float(alike.max(dim=0).values.mean())
    # Cosines may be negative, where a harmonic mean has no meaning.
    return 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0

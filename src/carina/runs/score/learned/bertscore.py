"""BERTScore: greedy cosine matching of the last hidden states, as F1, without idf weights and without rescaling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from carina.models.chat.loading import first_line, silence_transformers
from carina.models.extra import require
from carina.models.weights import Checkpoint
from carina.runs.score.learned.metric import Pair, TextMetric
from carina.runs.score.learned.weights import short, tokenizer_in
from carina.store.errors import CarinaError

# Why not the package bert-score: it works offline from a local folder, but it lets tokens match the marks at the ends
# of the other text, so that figures differ from ours by up to 0.009; it fills missing weights with random numbers and
# takes pickled ones; and it brings pandas, matplotlib and requests for the forty lines below.
_BATCH: Final = 32
_TOKENS: Final = 512
_DIGITS: Final = 6
"""Digits that do not depend on the machine."""
_UNUSED: Final = "pooler."
"""Weights that many encoders are published without, and that no hidden state depends on."""


def open_bertscore(folder: Path) -> TextMetric:
    """Load BERTScore with an encoder in the layout that transformers saves, in safetensors."""
    checkpoint = Checkpoint.of(folder)
    tokenizer, model = tokenizer_in(folder), _encoder(folder)

    def score(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        vectors = _embed_texts(tokenizer, model, {text for pair in pairs for text in pair})
        return [(_match_tokens(vectors[key], vectors[answer]),) for key, answer in pairs]

    return TextMetric("BERTScore", short(checkpoint.weights_sha256), ("bertscore",), score)


def _encoder(folder: Path) -> Any:  # noqa: ANN401 - transformers is not there for everybody
    torch, transformers = require("torch", "transformers")
    with silence_transformers(transformers), torch.random.fork_rng(devices=[]):
        try:
            model, info = transformers.AutoModel.from_pretrained(
                str(folder),
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except Exception as error:
            raise CarinaError(f"{folder}: cannot be loaded as an encoder: {first_line(error)}") from error
    missing = sorted(map(str, [*info["missing_keys"], *info["mismatched_keys"]]))
    needed = [name for name in missing if not name.startswith(_UNUSED)]
    if needed:
        raise CarinaError(f"{folder}: the weight {needed[0]} is missing or of another shape")
    return model.eval()


def _embed_texts(tokenizer: Any, model: Any, texts: set[str]) -> dict[str, Any]:  # noqa: ANN401
    """Normalised last hidden states of the tokens of each text, without special tokens."""
    (torch,) = require("torch")
    found: dict[str, Any] = {}
    longest = min(_TOKENS, model.config.max_position_embeddings - 2)  # some count positions from 2
    # Texts of similar length are batched together: little padding, and always the same batches.
    ordered = sorted(texts, key=lambda text: (len(text), text))
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        coded = tokenizer(
            batch,
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=longest,
            return_special_tokens_mask=True,
        )
        special = coded.pop("special_tokens_mask").bool()
        with torch.inference_mode():
            hidden = model(**coded).last_hidden_state
            directions = torch.nn.functional.normalize(hidden, dim=-1)
        kept = coded["attention_mask"].bool() & ~special
        found.update({text: directions[n][kept[n]] for n, text in enumerate(batch)})
    return found


def _match_tokens(key: Any, answer: Any) -> float:  # noqa: ANN401
    """F1 of the best matches between the tokens of two texts; 0 where one of them has none."""
    if not len(key) or not len(answer):
        return 0.0
    cosines = key @ answer.T
    recall, precision = float(cosines.max(dim=1).values.mean()), float(cosines.max(dim=0).values.mean())
    # Cosines may be negative, where a harmonic mean has no meaning.
    if precision <= 0 or recall <= 0:
        return 0.0
    return round(min(2 * precision * recall / (precision + recall), 1.0), _DIGITS)

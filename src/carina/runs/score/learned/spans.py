"""The network of RadGraph (DyGIE++): entities and relations of a text, by scoring its spans of words.

Every span of a few words is represented by the encoder's states of its first and its last word and by its width. One
scorer names the entities. Another keeps the spans that may take part in a relation, and a third names the relation of
every pair of these. Only what RadGraph uses is here: no coreference, no events, one text at a time.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from carina.models.extra import require
from carina.runs.score.learned.weights import State, take

# ---- words ----

_MARKS: Final = re.compile(r"[/,:.!?()]|[^\s/,:.!?()]+")
"""First edition: these marks are words of their own; otherwise text is split only at spaces."""
_RUNS: Final = re.compile(r"\w+|[^\w\s]+")
"""XL edition: runs of letters and digits, and runs of all other signs."""
_ESCAPED: Final = re.compile(r"\\n|\\f|\\u2122")
_SPLIT: Final = (").", "%.", ".'", "%,", "%)")
"""Signs that the training texts separate though they follow each other."""
_FIRST: Final = frozenset({"radgraph", "None"})
"""Names of the training data of the first edition; `None` in the files of PhysioNet."""


def split_words(text: str, edition: str) -> list[str]:
    """Split a text into words and marks as the network was trained, each edition in its own way."""
    if edition in _FIRST:
        return _MARKS.findall(text)
    spaced = " ".join(_RUNS.findall(_ESCAPED.sub(" ", text).replace('\\"', "``")))
    for both in _SPLIT:
        spaced = spaced.replace(both, " ".join(both))
    return spaced.split()


def as_read(word: str) -> str:
    """A word as the encoder reads it."""
    return word[1:] if word in ("/.", "/?") else word


# ---- the network ----

ENCODER: Final = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
"""Prefix of the names of the encoder's weights."""
ELSEWHERE: Final = ("_coref.", "_events.")
"""Parts of the checkpoint that entities and relations do not depend on."""
_WIDTHS: Final = "_endpoint_span_extractor._span_width_embedding.weight"
_PAIRS: Final = 4096
"""Pairs of spans that are scored together."""


class Relation(NamedTuple):
    """Relation of an entity to another."""

    label: str
    other: int
    """Index of the other among the entities of the text."""


class Entity(NamedTuple):
    """A labelled span of words."""

    words: str
    label: str
    first: int
    last: int
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Layout:
    """Sizes and labels of the network."""

    edition: str
    """Name of the training data; part of the names of the weights."""
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    widest: int
    """Largest number of words of a span."""
    layers: int
    """Hidden layers of every scorer."""
    spans_per_word: float
    """Spans that may take part in relations, for each word of the text."""
    pieces: int
    """Word pieces that the encoder takes at once, with the marks at both ends."""


Layers = list[tuple[Any, Any]]
"""Weight and bias of each layer, with ReLU between the layers."""


class SpanModel:
    """The loaded network; `graph` computes the entities and relations of a text."""

    def __init__(self, layout: Layout, tokenizer: Any, encoder: Any, state: State, path: Path) -> None:  # noqa: ANN401
        """Take the weights of the scorers out of `state`."""
        self._layout = layout
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._widths = take(state, {_WIDTHS: (layout.widest, None)}, path)[_WIDTHS]
        span = 2 * encoder.config.hidden_size + self._widths.shape[1]
        ner, related = f"{layout.edition}__ner_labels", f"{layout.edition}__relation_labels"

        def layers(hidden: str, last: str, inputs: int, outputs: int) -> Layers:
            names = [f"{hidden}{n}" for n in range(layout.layers)]
            return _layers(state, path, [*names, last], inputs=inputs, outputs=outputs)

        self._entities = layers(
            f"_ner._ner_scorers.{ner}.0._module._linear_layers.",
            f"_ner._ner_scorers.{ner}.1._module",
            span,
            len(layout.entities),
        )
        pruner = f"_relation._mention_pruners.{related}._scorer"
        self._candidates = layers(f"{pruner}.0._module._linear_layers.", f"{pruner}.1._module", span, 1)
        self._relations = layers(
            f"_relation._relation_feedforwards.{related}._linear_layers.",
            f"_relation._relation_scorers.{related}",
            3 * span,
            len(layout.relations),
        )

    def graph(self, words: Sequence[str]) -> tuple[Entity, ...]:
        """Entities in the order of their first words, then of their last."""
        if not words:
            return ()
        (torch,) = require("torch")
        with torch.inference_mode():
            spans = [
                (first, last)
                for first in range(len(words))
                for last in range(first, min(first + self._layout.widest, len(words)))
            ]
            embedded = self._embed_spans(words, spans)
            named = {
                span: self._layout.entities[label]
                for span, label in zip(spans, _best(_scores(self._entities, embedded)), strict=True)
                if label is not None
            }
            places = {span: place for place, span in enumerate(named)}
            related: dict[tuple[int, int], list[Relation]] = {span: [] for span in named}
            for one, label, other in self._find_relations(len(words), spans, embedded):
                # Relations between spans that are not entities are dropped.
                if one in named and other in named:
                    related[one].append(Relation(label, places[other]))
        return tuple(
            Entity(" ".join(words[first : last + 1]), label, first, last, tuple(related[first, last]))
            for (first, last), label in named.items()
        )

    def _embed_spans(self, words: Sequence[str], spans: Sequence[tuple[int, int]]) -> Any:  # noqa: ANN401
        (torch,) = require("torch")
        states = self._word_states(words)
        firsts, lasts = (torch.tensor([span[end] for span in spans]) for end in (0, 1))
        return torch.cat([states[firsts], states[lasts], self._widths[lasts - firsts]], dim=-1)

    def _word_states(self, words: Sequence[str]) -> Any:  # noqa: ANN401
        """A state for every word: the mean over its pieces, or zeros where it has none."""
        (torch,) = require("torch")
        pieces = [
            self._tokenizer(as_read(word), add_special_tokens=False)["input_ids"] if word else []
            for word in words
        ]
        flat = [piece for of_word in pieces for piece in of_word]
        # As in training, long texts are encoded in segments, even if a word is split between two of them.
        most = self._layout.pieces - 2
        start, end = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        hidden = [
            self._encoder(input_ids=torch.tensor([[start, *flat[at : at + most], end]])).last_hidden_state[
                0, 1:-1
            ]
            for at in range(0, len(flat), most)
        ]
        whole: Any = torch.cat(hidden) if hidden else ()
        states = torch.zeros(len(words), self._encoder.config.hidden_size)
        ends = torch.tensor([len(of_word) for of_word in pieces]).cumsum(0).tolist()
        for number, (stop, of_word) in enumerate(zip(ends, pieces, strict=True)):
            if of_word:
                states[number] = whole[stop - len(of_word) : stop].mean(dim=0)
        return states

    def _find_relations(
        self,
        words: int,
        spans: Sequence[tuple[int, int]],
        embedded: Any,  # noqa: ANN401
    ) -> Iterator[tuple[tuple[int, int], str, tuple[int, int]]]:
        """Pairs of spans with the name of their relation."""
        (torch,) = require("torch")
        likely = _scores(self._candidates, embedded)[:, 0]
        number = min(math.ceil(words * self._layout.spans_per_word), len(spans))
        kept = likely.topk(number).indices.sort().values
        some, likely = embedded[kept], likely[kept]
        at_a_time = max(_PAIRS // number, 1)
        for start in range(0, number, at_a_time):
            ones = some[start : start + at_a_time]
            left = ones[:, None].expand(-1, number, -1)
            right = some[None].expand(len(ones), -1, -1)
            scores = _scores(self._relations, torch.cat([left, right, left * right], dim=-1))
            scores = scores + likely[start : start + at_a_time, None, None] + likely[None, :, None]
            for place, label in enumerate(_best(scores.flatten(0, 1))):
                if label is not None:
                    one, other = kept[start + place // number], kept[place % number]
                    yield spans[one], self._layout.relations[label], spans[other]


def _layers(state: State, path: Path, names: Sequence[str], *, inputs: int, outputs: int) -> Layers:
    """The layers of a scorer, each as wide as its bias is long."""
    found: Layers = []
    for name in names:
        weight, bias = f"{name}.weight", f"{name}.bias"
        wide = outputs if name == names[-1] else None
        of_layer = take(state, {weight: (wide, inputs), bias: (wide,)}, path)
        found.append((of_layer[weight], of_layer[bias]))
        inputs = len(of_layer[bias])
    return found


def _scores(layers: Layers, inputs: Any) -> Any:  # noqa: ANN401
    (torch,) = require("torch")
    *hidden, last = layers
    for weight, bias in hidden:
        inputs = torch.relu(torch.nn.functional.linear(inputs, weight, bias))
    return torch.nn.functional.linear(inputs, *last)


def _best(scores: Any) -> list[int | None]:  # noqa: ANN401
    """The highest label of each row; None where none is above 0, which is the score of no label."""
    highest, labels = scores.max(dim=-1)
    return [
        label if score > 0 else None for score, label in zip(highest.tolist(), labels.tolist(), strict=True)
    ]

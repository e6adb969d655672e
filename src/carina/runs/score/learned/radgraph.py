"""RadGraph: entities and relations of a report, and F1 between two texts.

The published archives are read, unpacked: `config.json`, `vocabulary/` and `weights.th`, with the configuration and
tokenizer of the encoder that they name beside them. `radgraph_entity_f1` compares entities by their words and label
(RG_E); `radgraph_f1` also whether an entity has any relation (RG_ER, the figure that most papers give). As published,
words are compared with their case, and a text without entities has the F1 0.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec

from carina.models.weights import CONFIG
from carina.runs.score.learned.metric import Pair, TextMetric, f1
from carina.runs.score.learned.spans import ELSEWHERE, ENCODER, Entity, Layout, SpanModel, split_words
from carina.runs.score.learned.weights import (
    encoder_in,
    present,
    read_state,
    refuse_others,
    short_sha256,
    tokenizer_in,
)
from carina.store.documents import read_json
from carina.store.errors import CarinaError

WEIGHTS: Final = "weights.th"
VOCABULARY: Final = "vocabulary"
ENCODER_FOLDER: Final = "encoder"
MOST_WORDS: Final = 512
"""Words of a text that are read; pairs of spans grow with the square, and reports have a third as many words."""
_ENTITIES: Final = "__ner_labels.txt"
_RELATIONS: Final = "__relation_labels.txt"


class _Encoder(msgspec.Struct, frozen=True):
    model_name: str
    max_length: Annotated[int, msgspec.Meta(gt=2)] = 512


class _Indexers(msgspec.Struct, frozen=True):
    bert: _Encoder


class _Reader(msgspec.Struct, frozen=True):
    max_span_width: Annotated[int, msgspec.Meta(gt=0)]
    token_indexers: _Indexers


class _Scorers(msgspec.Struct, frozen=True):
    num_layers: Annotated[int, msgspec.Meta(ge=0)]


class _RelationConfig(msgspec.Struct, frozen=True):
    spans_per_word: Annotated[float, msgspec.Meta(gt=0)]


class _CoreferenceConfig(msgspec.Struct, frozen=True):
    coref_prop: int = 0


class _Modules(msgspec.Struct, frozen=True):
    relation: _RelationConfig
    coref: _CoreferenceConfig = _CoreferenceConfig()


class _Network(msgspec.Struct, frozen=True):
    feedforward_params: _Scorers
    modules: _Modules


class _Config(msgspec.Struct, frozen=True):
    """The part of `config.json` that decides what is computed."""

    dataset_reader: _Reader
    model: _Network


def open_radgraph(folder: Path) -> TextMetric:
    """Load RadGraph from an unpacked archive; `encoder/` holds `config.json` and the tokenizer of its encoder."""
    graph = open_graph_model(folder)

    def score(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        found = {text: graph(text) for text in {text for pair in pairs for text in pair}}
        return [
            (
                f1(_entity_labels(found[key]), _entity_labels(found[answer])),
                f1(_entity_relations(found[key]), _entity_relations(found[answer])),
            )
            for key, answer in pairs
        ]

    columns = ("radgraph_entity_f1", "radgraph_f1")
    return TextMetric("RadGraph", short_sha256(folder / WEIGHTS), columns, score)


def open_graph_model(folder: Path) -> Callable[[str], tuple[Entity, ...]]:
    """Load the model of a folder; returns a function from a text to its entities."""
    config = _read_config(present(folder, CONFIG, needed="an unpacked archive of RadGraph"))
    path = present(folder, WEIGHTS, needed="an unpacked archive of RadGraph")
    named = config.dataset_reader.token_indexers.bert.model_name
    encoder_folder = folder / ENCODER_FOLDER
    present(encoder_folder, CONFIG, needed=f"the configuration and tokenizer of {named}")
    layout = _make_layout(folder, config)
    state = read_state(path)
    encoder = encoder_in(encoder_folder, state, ENCODER, path)
    model = SpanModel(layout, tokenizer_in(encoder_folder), encoder, state, path)
    refuse_others(state, path, apart_from=ELSEWHERE)
    return lambda text: model.graph(split_words(text, layout.edition)[:MOST_WORDS])


def _entity_labels(entities: Sequence[Entity]) -> frozenset[object]:
    return frozenset((one.words, one.label) for one in entities)


def _entity_relations(entities: Sequence[Entity]) -> frozenset[object]:
    return frozenset((one.words, one.label, bool(one.relations)) for one in entities)


def _read_config(path: Path) -> _Config:
    config = read_json(path, _Config, what="the configuration of a RadGraph")
    if config.model.modules.coref.coref_prop:
        raise CarinaError(
            f"{path}: coref_prop is not 0: spans that learn from coreference are not computed here"
        )
    return config


def _make_layout(folder: Path, config: _Config) -> Layout:
    found = sorted((folder / VOCABULARY).glob(f"*{_ENTITIES}"))
    if len(found) != 1:
        raise CarinaError(
            f"{folder / VOCABULARY}: expected one file NAME{_ENTITIES}, found {len(found)}; is the archive unpacked?"
        )
    edition = found[0].name.removesuffix(_ENTITIES)
    none, *entities = _lines(found[0])
    if none or not entities:
        raise CarinaError(f"{found[0]}: expected an empty line for no label, then the labels")
    relations = present(folder / VOCABULARY, f"{edition}{_RELATIONS}", needed="the names of relations")
    return Layout(
        edition=edition,
        entities=tuple(entities),
        relations=tuple(_lines(relations)),
        widest=config.dataset_reader.max_span_width,
        layers=config.model.feedforward_params.num_layers,
        spans_per_word=config.model.modules.relation.spans_per_word,
        pieces=config.dataset_reader.token_indexers.bert.max_length,
    )


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() or [""]

"""RadGraph: weights that can be read by hand, and drawn ones whose graphs the published package computed."""

import json
import shutil

import pytest

from carina.runs.score.learned.radgraph import MOST_WORDS, open_graph_model, open_radgraph
from carina.runs.score.learned.spans import ENCODER, Entity, Relation
from carina.store.errors import CarinaError
from carina.store.files import sha256

ANATOMY, OBSERVATION = "Anatomy::definitely present", "Observation::definitely present"


def test_edema_is_located_at_a_lung(radgraph):
    graph = open_graph_model(radgraph)
    assert graph("the edema in the left lung.") == (
        Entity("edema", OBSERVATION, 1, 1, (Relation("located_at", 1),)),
        Entity("lung", ANATOMY, 5, 5, ()),
    )
    assert graph("lung, edema") == (
        Entity("lung", ANATOMY, 0, 0, ()),
        Entity("edema", OBSERVATION, 2, 2, (Relation("located_at", 0),)),
    )
    assert graph("the heart") == ()
    assert graph("edema edema lung")[:2] == (
        Entity("edema", OBSERVATION, 0, 0, (Relation("located_at", 3),)),
        # A span is named by its first and last word.
        Entity("edema edema", OBSERVATION, 0, 1, (Relation("located_at", 3),)),
    )


def test_f1_of_known_graphs_equals_values_worked_out_by_hand(radgraph):
    metric = open_radgraph(radgraph)
    assert metric.columns == ("radgraph_entity_f1", "radgraph_f1")
    assert metric.weights == sha256(radgraph / "weights.th")[:16]
    expected = {
        ("edema in the lung", "lung edema"): (1.0, 1.0),
        # The edema of the key has a relation, that of the answer has none.
        ("edema in the lung", "mild edema"): (2 / 3, 0.0),
        ("edema in the lung", "left lung"): (2 / 3, 2 / 3),
        ("edema", "lung"): (0.0, 0.0),
        ("edema", "the heart"): (0.0, 0.0),
        ("the heart", "the heart"): (0.0, 0.0),
    }
    assert dict(zip(expected, metric.score(list(expected)), strict=True)) == {
        pair: pytest.approx(figures) for pair, figures in expected.items()
    }


def test_only_likely_spans_take_part_in_relations(tiny, tmp_path):
    """One span a text is kept, the best one: nobody is left for it to be related to but itself."""
    folder = tiny.save_radgraph(tmp_path / "model", spans_per_word=0.01)
    graph = open_graph_model(folder)
    assert [one.relations for one in graph("edema in the lung")] == [(), ()]


def test_texts_of_any_length_are_read_in_stretches(radgraph):
    graph = open_graph_model(radgraph)
    long = graph("the mild heart is clear " * 60 + "edema in the left lung")
    assert [(one.words, one.first, len(one.relations)) for one in long] == [
        ("edema", 300, 1),
        ("lung", 304, 0),
    ]
    assert graph("the " * MOST_WORDS + "edema") == ()


TEXTS = (
    "mild edema in the left lung.",
    "No effusions (2cm), heart is clear/mild.",
    "the heart is clear",
    "left lung edema. the heart is mild, maybe no effusions in the lung. edema 2cm in the left heart",
)
A, B = ANATOMY, OBSERVATION
FIRST = {
    0: [(0, 2, B, []), (1, 3, B, []), (2, 4, B, []), (4, 5, B, [("modify", 3)])],
    1: [(1, 2, B, []), (4, 6, B, []), (5, 6, B, []), (5, 7, A, [("modify", 3)]), (6, 8, B, []), (7, 7, B, [])]
    + [(7, 8, B, []), (7, 9, B, []), (8, 8, B, []), (8, 9, B, []), (8, 10, B, [])],
    3: [(0, 2, B, []), (1, 2, A, []), (2, 3, B, []), (6, 8, A, []), (8, 10, B, []), (13, 14, B, [])]
    + [(13, 15, A, []), (15, 15, B, []), (15, 16, B, []), (18, 20, B, [])],
}
BOTH = [("modify", 0), ("modify", 3)]
ALL = [("modify", 4), ("modify", 5), ("modify", 8)]
XL = {
    0: [(1, 1, A, BOTH), (1, 2, A, []), (1, 3, A, []), (2, 2, A, BOTH), (6, 6, A, [])],
    1: [(0, 0, A, []), (0, 1, A, []), (3, 4, A, []), (4, 5, A, []), (4, 6, A, ALL), (6, 6, A, ALL)]
    + [(6, 7, A, []), (6, 8, A, []), (10, 10, A, ALL)],
    2: [(0, 0, A, BOTH), (0, 1, A, []), (1, 1, A, []), (2, 2, A, BOTH)],
}
"""What the package radgraph 0.1.18 finds with these weights: first and last word, label, relations."""


@pytest.mark.parametrize(("edition", "expected"), [("radgraph", FIRST), ("radgraph-xl", XL)])
def test_graphs_are_those_of_the_published_package(tiny, tmp_path, edition, expected):
    """The last text of the first edition is longer than the encoder sees at once."""
    graph = open_graph_model(tiny.save_radgraph(tmp_path / "model", tiny.drawn_state(edition), edition))
    found = {
        number: [
            (one.first, one.last, one.label, [tuple(to) for to in one.relations])
            for one in graph(TEXTS[number])
        ]
        for number in expected
    }
    assert found == expected


def test_figures_are_those_of_the_published_package(tiny, tmp_path):
    metric = open_radgraph(
        tiny.save_radgraph(tmp_path / "model", tiny.drawn_state("radgraph-xl"), "radgraph-xl")
    )
    pairs = [(TEXTS[0], TEXTS[0]), (TEXTS[0], TEXTS[1]), (TEXTS[0], TEXTS[2]), (TEXTS[1], TEXTS[2])]
    expected = [(1.0, 1.0), (1 / 7, 0.0), (0.0, 0.0), (2 / 13, 2 / 13)]
    assert metric.score(pairs) == [pytest.approx(figures) for figures in expected]


def test_words_without_pieces_have_no_state(radgraph):
    graph = open_graph_model(radgraph)
    joiner = "\u200d"  # which the tokenizer drops
    assert graph(joiner) == ()
    assert [(one.words, one.first) for one in graph(f"{joiner} edema")] == [("edema", 1)]
    assert graph(" ") == ()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("_ner._ner_scorers.radgraph-xl__ner_labels.1._module.bias", "is missing"),
        ("_relation._relation_scorers.radgraph-xl__relation_labels.weight", "is missing"),
        (f"{ENCODER}encoder.layer.0.output.dense.weight", "is missing"),
        ("_ner._ner_scorers.other__ner_labels.1._module.bias", "is not known"),
    ],
)
def test_a_weight_that_does_not_fit_is_named(tiny, tmp_path, name, told):
    import torch

    state = tiny.readable_state("radgraph-xl")
    if name in state:
        del state[name]
    else:
        state[name] = torch.zeros(2)
    with pytest.raises(CarinaError) as error:
        open_radgraph(tiny.save_radgraph(tmp_path / "model", state))
    assert f"weights.th: the weight {name} {told}" in str(error.value)


def test_a_label_file_that_does_not_fit_the_weights_is_refused(tiny, tmp_path):
    folder = tiny.save_radgraph(tmp_path / "model")
    labels = folder / "vocabulary" / "radgraph-xl__ner_labels.txt"
    labels.write_text("\nAnatomy\nObservation\nMore\n")
    with pytest.raises(CarinaError, match=r"has the shape \(2, 6\), expected \(3, 6\)"):
        open_radgraph(folder)
    labels.write_text("Anatomy\n")
    with pytest.raises(CarinaError, match="expected an empty line for no label"):
        open_radgraph(folder)
    labels.unlink()
    with pytest.raises(CarinaError, match=r"expected one file NAME__ner_labels\.txt, found 0"):
        open_radgraph(folder)


def test_missing_files_and_unsupported_networks_are_named(radgraph, tmp_path):
    folder = shutil.copytree(radgraph, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["model"]["modules"]["coref"]["coref_prop"] = 2
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CarinaError, match="coref_prop is not 0"):
        open_radgraph(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(
        CarinaError, match=r"config\.json: not the configuration of a RadGraph.*dataset_reader"
    ):
        open_radgraph(folder)
    shutil.copy(radgraph / "config.json", folder)
    shutil.rmtree(folder / "encoder")
    with pytest.raises(CarinaError, match=r"encoder/config\.json: missing; .*tokenizer of owner/encoder"):
        open_radgraph(folder)
    (folder / "weights.th").unlink()
    with pytest.raises(CarinaError, match=r"weights\.th: missing"):
        open_radgraph(folder)

"""Probes of findings that several readers drew: how their regions become one, and how the readers do themselves."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cases.reader_scores import ReaderFacts, score_reader
from carina.cli import app
from carina.ground import build_ground
from carina.ground.facts import GroundCaseFacts
from carina.ground.truth import truth_of
from carina.maps.score import score_pair
from carina.models.frame import Frame
from carina.studies import (
    Annotation,
    Assessed,
    Finding,
    Image,
    Provenance,
    Region,
    SalientPoint,
    Study,
    write_studies,
)
from carina.studies.readers import FUSIONS, FusionRule

HEIGHT, WIDTH = 40, 60


def box(x, y, w, h):
    return Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)


def drawn(reader, region, number=0, kind="box", **more):
    return Annotation(image=f"{number}.png", region=region, drawn=kind, annotator=reader, **more)


def study(number, *annotations, stated_by=(), certainty="present", readers=("A", "B", "C")):
    found = Finding(id="f1", name="mass", certainty=certainty, annotations=annotations, stated_by=stated_by)
    return Study(
        id=f"s{number}",
        patient=f"p{number}",
        source="made",
        images=(Image(key=f"{number}.png", view="PA", width=WIDTH, height=HEIGHT),),
        findings=(found,) if certainty != "silent" else (),
        assessed=Assessed(findings="listed", listed=("mass",), readers=readers),
    )


STUDIES = (
    study(0, drawn("A", box(0, 0, 10, 10)), drawn("B", box(2, 0, 10, 10)), stated_by=("A", "B")),
    study(1, *(drawn(reader, box(20, 10, 8, 8), 1) for reader in "ABC"), stated_by=("A", "B", "C")),
    study(2, certainty="silent"),
    study(3, certainty="silent"),
)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    root = tmp_path_factory.mktemp("readers")
    write_studies(root / "studies", STUDIES, Provenance(command="made"))
    return root / "studies"


def facts_of(bench):
    return {(case.study, GroundCaseFacts.of(case).reader): GroundCaseFacts.of(case) for case in bench}


def truth_in(bench, name):
    case = next(case for case in bench if case.study == name)
    facts = GroundCaseFacts.of(case)
    return case.region(facts.region("truth")).region, facts.fusion


@pytest.mark.parametrize(
    ("options", "expected", "words"),
    [
        ([], box(0, 0, 12, 10), "union of 3 readers"),
        (["--readers", "consensus"], box(2, 0, 8, 10), "consensus of at least 2 of 3 readers"),
        (
            ["--readers", "consensus", "--at-least", "1"],
            box(0, 0, 12, 10),
            "consensus of at least 1 of 3 readers",
        ),
        (["--readers", "intersection"], box(2, 0, 8, 10), "intersection of 3 readers"),
        (
            ["--readers", "weighted-boxes"],
            box(1, 0, 10, 10),
            "weighted boxes of at least 2 of 3 readers, IoU 0.5",
        ),
        (["--readers", "first"], box(0, 0, 10, 10), "first of 3 readers by name"),
    ],
)
def test_the_command_line_names_the_rule_and_the_manifest_records_it(
    studies, tmp_path, options, expected, words
):
    done = CliRunner().invoke(
        app,
        [
            "build",
            "ground",
            str(studies),
            "-o",
            str(tmp_path / "bench"),
            "--json",
            "--workers",
            "1",
            *options,
        ],
    )
    assert done.exit_code == 0, done.output
    bench = open_benchmark(tmp_path / "bench")
    assert truth_in(bench, "s0") == (expected, words)
    recorded = json.loads((tmp_path / "bench" / "bench.json").read_text())["options"]
    assert recorded["readers"] == (options[1] if options else "union")
    assert recorded["box_overlap"] == 0.5


def test_each_reader_has_a_probe_and_the_others_are_scored_against_it(studies, tmp_path):
    facts = facts_of(build_ground(studies, tmp_path / "bench", readers="each", workers=1))
    assert {key for key in facts if key[1]} == {
        ("s0", "A"),
        ("s0", "B"),
        ("s1", "A"),
        ("s1", "B"),
        ("s1", "C"),
    }
    of_a = facts["s0", "A"]
    # B covers 8 of the 10 columns of A.
    assert of_a.fusion == "one annotator"
    # C looked and drew nothing.
    assert {name: one.iou for name, one in of_a.readers.items() if one.iou is not None} == {
        "B": pytest.approx(80 / 120),
        "C": 0,
    }


def test_each_reader_is_scored_against_the_others_and_facts_come_back(studies, tmp_path):
    facts = facts_of(build_ground(studies, tmp_path / "bench", workers=1))
    readers = facts["s0", None].readers
    # A and B share 8 of 12 columns: IoU 80 / 120, Dice 160 / 200, and 80 of the 100 pixels of each lie in the other.
    for name in "AB":
        one = readers[name]
        assert (one.iou, one.dice, one.pointing) == (pytest.approx(2 / 3), 0.8, 0.8)
        assert one.boxes == pytest.approx(2 / 3)
        assert one.localised == 1  # 2 / 3 is at least 0.5, as an answer of a model counts as right
        assert one.auroc == pytest.approx((0.8 + 1 - 20 / 2300) / 2)
        assert one.presence == 0.5  # the two others are divided
    # C looked and drew nothing, against two who did: as a model that gives no box and a map of one value.
    assert readers["C"] == ReaderFacts(iou=0, dice=0, pointing=0, boxes=0, localised=0, auroc=0.5, presence=0)
    assert {
        name: (one.iou, one.presence) for name, one in facts["s1", None].readers.items()
    } == dict.fromkeys("ABC", (1, 1))
    # Where the finding is absent, all three say so.
    assert {
        name: (one.iou, one.presence) for name, one in facts["s2", None].readers.items()
    } == dict.fromkeys("ABC", (None, 1))


@pytest.mark.parametrize("rule", ["union", "consensus", "weighted-boxes", "intersection", "first"])
def test_who_is_outvoted_and_who_is_in_the_majority_are_both_scored(rule):
    # A and B drew the same, C drew nothing: A's others are divided, and so are B's; C's others agree.
    two = [drawn(reader, box(5, 5, 10, 10)) for reader in "AB"]
    finding = Finding(id="f1", name="mass", certainty="present", annotations=tuple(two))
    truth = truth_of([finding], STUDIES[0].images[0], FusionRule(fusion=rule), looked=3, silent=["C"])
    assert {name: (one.iou, one.boxes) for name, one in truth.readers.items()} == {
        "A": (1, 1),
        "B": (1, 1),
        "C": (0, 0),
    }


def test_a_reader_who_drew_a_kind_of_it_has_not_missed_it(tmp_path):
    # C calls a nodule what A and B call a mass; it is a kind of the same, so that C's region is not compared.
    first = study(0, *(drawn(reader, box(0, 0, 10, 10)) for reader in "AB"), stated_by=("A", "B"))
    opacity = replace(first.findings[0], name="lung opacity")
    kind = Finding(
        id="f2",
        name="mass",
        certainty="present",
        annotations=(drawn("C", box(0, 0, 9, 9)),),
        stated_by=("C",),
    )
    looked = replace(first.assessed, listed=("lung opacity", "mass"))
    write_studies(
        tmp_path / "studies",
        [replace(first, findings=(opacity, kind), assessed=looked)],
        Provenance(command="made"),
    )
    bench = build_ground(tmp_path / "studies", tmp_path / "bench", targets=["lung opacity"], workers=1)
    readers = facts_of(bench)["s0", None].readers
    assert {name: (one.iou, one.presence) for name, one in readers.items()} == {
        "A": (1, 1),
        "B": (1, 1),
        "C": (None, 1),
    }


def test_readers_for_comparison_are_scored_against_the_truth_and_are_never_part_of_it():
    # H drew one column more than the 9 of the experts, and one of H's points lies outside; N drew nothing.
    image = STUDIES[0].images[0]
    finding = Finding(
        id="f1",
        name="mass",
        certainty="present",
        annotations=(drawn("experts", box(1, 1, 9, 9), kind="mask"),),
        comparisons=(
            drawn("H", box(1, 1, 10, 9), kind="mask"),
            drawn("N", Region.empty(HEIGHT, WIDTH), kind="mask"),
        ),
        points=tuple(SalientPoint(image="0.png", x=x, y=5, annotator="H") for x in (9.5, 10)),
    )
    for rule in FUSIONS:
        truth = truth_of([finding], image, FusionRule(fusion=rule))
        assert (truth.region, truth.annotators, truth.agreement) == (box(1, 1, 9, 9), 1, None)
        human, nothing = truth.readers["H"], truth.readers["N"]
        assert (human.iou, human.pointing, human.points) == (0.9, 0.9, 0.5)
        assert (nothing.iou, nothing.boxes, nothing.auroc, nothing.points) == (0, 0, 0.5, None)


def test_one_reader_and_a_program_give_no_ceiling():
    image = STUDIES[0].images[0]
    alone = Finding(id="f1", name="mass", certainty="present", annotations=(drawn("A", box(0, 0, 9, 9)),))
    assert truth_of([alone], image, FusionRule()).readers == {}
    both = Finding(
        id="f1",
        name="mass",
        certainty="present",
        annotations=(drawn("A", box(0, 0, 9, 9)), drawn("net", box(5, 5, 9, 9), automatic=True)),
    )
    truth = truth_of([both], image, FusionRule())
    assert (truth.region, truth.annotators, truth.readers) == (box(0, 0, 9, 9), 1, {})
    program = Finding(
        id="f1",
        name="mass",
        certainty="present",
        annotations=(
            drawn("net", box(5, 5, 9, 9), automatic=True),
            drawn("web", box(5, 5, 9, 9), automatic=True),
        ),
    )
    assert truth_of([program], image, FusionRule()).readers == {}


SIDES = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 15), st.integers(1, 15))


@given(SIDES, SIDES)
def test_a_reader_is_scored_as_a_map_of_a_model_is(one, other):
    own, truth = box(*one), box(*other)
    names = [
        f"{metric}.bilinear_full.full_image"
        for metric in ("hit.expected", "iou.otsu", "dice.otsu", "iou.minmax_0.5", "auroc", "mass")
    ]
    values = own.to_mask().astype(np.float32)
    # A square frame of the size of the image, so that a cell is a pixel.
    side = max(HEIGHT, WIDTH)
    padded = np.zeros((side, side), np.float32)
    padded[:HEIGHT, :WIDTH] = values
    whole = np.zeros((side, side), bool)
    whole[:HEIGHT, :WIDTH] = truth.to_mask()
    expected = score_pair(padded, whole, Frame.stretched(side, side, side=side), names)
    hit, iou, dice, half, auroc, mass = expected.values()
    square = Region.from_mask(whole), Region.from_mask(padded > 0)
    scored = score_reader(square[1], square[0], [square[1]], [square[0]])
    assert (scored.pointing, scored.iou, scored.dice) == pytest.approx((hit, iou, dice))
    assert (scored.iou, scored.auroc, scored.pointing) == pytest.approx((half, auroc, mass))
    assert scored.boxes == pytest.approx(own.iou(truth))

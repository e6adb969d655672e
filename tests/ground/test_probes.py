"""Probes from studies: what is asked where, what is true there, and who cannot be asked about."""

import tracemalloc
from collections import Counter
from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.cases import open_benchmark
from carina.cases.faults import faults
from carina.ground import build, build_ground
from carina.ground.facts import GroundCaseFacts
from carina.ground.options import GroundOptions
from carina.ground.selection import find_candidates, select_probes
from carina.ground.truth import truth_of
from carina.store.disk_sort import sort_on_disk
from carina.store.errors import CarinaError
from carina.studies import (
    Anatomy,
    Annotation,
    Assessed,
    Finding,
    Image,
    Location,
    Provenance,
    Region,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    certainty_of,
    open_studies,
    write_studies,
)
from carina.studies.readers import FusionRule

HEIGHT, WIDTH = 40, 60
replace = msgspec.structs.replace


def box(x, y, w, h):
    return Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)


def drawn(region, annotator="a", kind="mask", image="0.png", **more):
    return Annotation(image=image, region=region, drawn=kind, annotator=annotator, **more)


def finding(name, *annotations, certainty="present", number=1):
    return Finding(id=f"f{number}", name=name, certainty=certainty, annotations=annotations)


def study(number, *findings, patient=None, views=("PA",), **more):
    images = tuple(
        Image(key=f"{number}{'' if n == 0 else n}.png", view=view, width=WIDTH, height=HEIGHT)
        for n, view in enumerate(views)
    )
    moved = tuple(
        replace(
            one,
            annotations=tuple(
                replace(a, image=f"{number}.png") if a.image == "0.png" else a for a in one.annotations
            ),
        )
        for one in findings
    )
    return Study(
        id=f"s{number}",
        patient=patient or f"p{number}",
        source="made",
        order=0,
        images=images,
        findings=moved,
        **more,
    )


def chosen(*studies, **options):
    options = GroundOptions(**options)
    found = find_candidates(enumerate(studies), options)
    return list(select_probes(found, options)), found


EFFUSION = finding("pleural effusion", drawn(box(10, 20, 20, 10)))
NO_EFFUSION = finding("pleural effusion", certainty="absent")


# ---- truth ----------------------------------------------------------------------------------------------------------

LEFT, RIGHT, BOTH = box(0, 0, 4, 4), box(4, 0, 4, 4), box(0, 0, 8, 4)
IMAGE = Image(key="0.png", view="PA", width=WIDTH, height=HEIGHT)


@pytest.mark.parametrize(
    ("fusion", "expected"),
    # a draws the left half, b both, c the right half: each half has two of three.
    [("union", BOTH), ("consensus", BOTH), ("intersection", None), ("first", LEFT)],
)
def test_regions_of_several_annotators_become_one_by_the_rule_that_is_named(fusion, expected):
    by_three = finding("mass", drawn(LEFT, "a"), drawn(BOTH, "b"), drawn(RIGHT, "c"))
    truth = truth_of([by_three], IMAGE, FusionRule(fusion=fusion))
    if expected is None:
        assert truth is None
        return
    assert truth.region == expected
    assert truth.annotators == 3
    # Half, none and half of what two of them cover together.
    assert truth.agreement == pytest.approx((0.5 + 0 + 0.5) / 3)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        (("right",), "right"),
        (("left", "left"), "left"),
        (("left", "right"), "bilateral"),
        (("bilateral", "left"), "bilateral"),
        (("left", None), None),
        (("midline",), None),
    ],
)
def test_the_side_is_known_where_the_source_states_it_for_every_finding(sides, expected):
    said = [
        replace(finding("mass", drawn(LEFT), number=n), location=side and Location(side=side))
        for n, side in enumerate(sides)
    ]
    assert truth_of(said, IMAGE, FusionRule()).side == expected


def test_pieces_are_parts_of_masks_and_boxes_as_drawn():
    apart = drawn(box(0, 0, 10, 10).union(box(30, 0, 10, 10), box(50, 30, 1, 1)))
    # The single pixel is a hundredth of the largest part: no piece of its own, but part of the truth.
    truth = truth_of([finding("mass", apart)], IMAGE, FusionRule())
    assert (len(truth.pieces), truth.region.area) == (2, 201)
    touching = [drawn(box(0, 0, 10, 10), kind="box"), drawn(box(5, 5, 10, 10), kind="box")]
    truth = truth_of([finding("mass", *touching)], IMAGE, FusionRule())
    assert [piece.bbox for piece in truth.pieces] == [(0, 0, 10, 10), (5, 5, 10, 10)]
    assert truth.drawn == "box"


def test_a_region_of_another_image_size_is_refused():
    wrong = drawn(Region.full(10, 10))
    with pytest.raises(CarinaError, match=f"image {IMAGE.key}: .*10 x 10.*40 x 60"):
        truth_of([finding("mass", wrong)], IMAGE, FusionRule())


# ---- which ----------------------------------------------------------------------------------------------------------


def test_a_finding_that_is_drawn_is_asked_for_and_as_often_where_it_is_absent():
    free = [study(n, NO_EFFUSION) for n in range(2, 7)]
    probes, _ = chosen(study(0, EFFUSION), study(1, EFFUSION), *free)
    assert Counter((probe.target, probe.present) for probe in probes) == {
        ("pleural effusion", True): 2,
        ("pleural effusion", False): 2,
    }
    assert len(chosen(study(0, EFFUSION), *free, absent=3)[0]) == 4
    assert len(chosen(study(0, EFFUSION), *free, absent=0)[0]) == 1


def test_studies_without_a_probe_have_a_reason():
    hedged = [EFFUSION, finding("pleural effusion", certainty="uncertain", number=2)]
    lateral = finding("pleural effusion", drawn(box(1, 1, 5, 5), image="21.png"))
    studies = [
        study(0, *hedged),
        study(1, finding("pleural effusion")),
        study(2, lateral, views=("PA", "lateral")),
        study(3, EFFUSION, views=("lateral",)),
    ]
    probes, found = chosen(*studies)
    assert probes == []
    assert sorted(found.skipped) == [
        ("s0", "pleural effusion", "uncertain"),
        ("s1", "pleural effusion", "not drawn"),
        ("s2", "pleural effusion", "not drawn"),
        ("s3", "pleural effusion", "no image of a view that is asked about"),
    ]
    # The second image of study 2, "21.png", and the only one of study 3.
    assert {(probe.place, probe.image) for probe in chosen(*studies, lateral=True)[0]} == {(2, 1), (3, 0)}


def test_a_negative_probe_is_certainly_absent():
    ill = study(0, finding("consolidation", drawn(box(1, 1, 9, 9))))
    absent = finding("consolidation", certainty="absent")
    alike = study(1, absent, finding("pneumonia", drawn(box(1, 1, 9, 9)), number=2))
    called = study(2, absent, finding("atelectasis", certainty="uncertain", number=2))
    elsewhere = [study(3, absent, patient="x"), study(4, replace(absent, certainty="uncertain"), patient="x")]
    free = study(5, absent, finding("cardiomegaly", drawn(box(1, 1, 9, 9)), number=2))
    probes, found = chosen(ill, alike, called, *elsewhere, free, absent=5, targets=("consolidation",))
    assert [probe.place for probe in probes if not probe.present] == [5]
    assert found.not_absent == {
        ("consolidation", "something there may be called by its name"): 2,
        ("consolidation", "another study of the patient has it"): 1,
    }


def test_a_study_that_was_looked_through_is_a_negative_and_one_that_was_not_is_none():
    every, closed = Assessed(findings="every"), Assessed(findings="listed", listed=("mass", "edema"))
    studies = [
        study(0, finding("mass", drawn(box(5, 5, 10, 10))), assessed=closed),
        study(1, assessed=every),
        study(2, assessed=closed),
        study(3, assessed=Assessed(findings="listed", listed=("edema",))),
        study(4, assessed=Assessed(devices="every")),
        study(5, finding("abnormality", certainty="absent")),
        # The rules about look-alikes and about other studies of the patient hold for silence, too.
        study(6, finding("nodule"), assessed=every),
        study(7, patient="p0", assessed=every),
        study(8, views=("lateral",), assessed=every),
    ]
    options = GroundOptions(absent=10.0)
    found = find_candidates(enumerate(studies), options, names=["mass", "nodule"])
    probes = select_probes(found, options)
    assert {(probe.place, probe.present) for probe in probes if probe.target == "mass"} == {
        (0, True),
        (1, False),
        (2, False),
        (5, False),
    }
    assert {reason: number for (name, reason), number in found.not_absent.items() if name == "mass"} == {
        "nobody looked for it": 2,
        "something there may be called by its name": 1,
        "another study of the patient has it": 1,
        "no image of a view that is asked about": 1,
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["present", "absent", "uncertain", None]),
            st.sampled_from(["every", "listed", "unknown"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_every_negative_is_known_to_be_one(recorded):
    studies = [
        study(
            number,
            *([finding("mass", drawn(box(5, 5, 10, 10)), certainty=certainty)] if certainty else []),
            assessed=Assessed(findings=scope, listed=("edema", "mass") if scope == "listed" else ()),
        )
        for number, (certainty, scope) in enumerate(recorded)
    ]
    options = GroundOptions(absent=10.0)
    found = find_candidates(enumerate(studies), options, names=["mass"])
    negatives = {probe.place for probe in select_probes(found, options) if not probe.present}
    known = {place for place, one in enumerate(studies) if certainty_of(one, "mass") == "absent"}
    assert negatives <= known
    assert len(found.absent["mass"]) == len(known)
    unknown = sum(certainty_of(one, "mass") is None for one in studies)
    assert found.not_absent["mass", "nobody looked for it"] == unknown


def test_a_set_of_boxes_with_a_closed_list_gets_its_negatives(tmp_path):
    closed = Assessed(findings="listed", listed=("mass", "nodule"))
    studies = [
        study(0, finding("mass", drawn(box(5, 5, 10, 10))), assessed=closed),
        study(1, finding("fracture", drawn(box(5, 5, 10, 10))), assessed=closed),
        study(2, assessed=closed),
    ]
    write_studies(tmp_path / "studies", studies, Provenance(command="made"))
    built = build_ground(tmp_path / "studies", tmp_path / "bench", workers=1)
    assert {(one.target, one.present, one.absent): one.no_controls for one in built.build_report.targets} == {
        ("fracture", 1, 0): {"nobody looked for it": 2},
        ("mass", 1, 1): {},
    }


@given(most=st.integers(1, 12), seed=st.integers(0, 5))
def test_a_smaller_sample_is_part_of_a_larger_one(most, seed):
    studies = [study(n, EFFUSION) for n in range(12)]
    small, large = (
        {probe.place for probe in chosen(*studies, per_target=number, seed=seed)[0]}
        for number in (most, most + 1)
    )
    assert len(small) == most
    assert small <= large


def test_yes_stands_first_as_often_as_no():
    studies = [study(n, EFFUSION if n < 6 else NO_EFFUSION) for n in range(12)]
    first = Counter((probe.present, probe.yes_first) for probe in chosen(*studies)[0])
    assert set(first.values()) == {3}


def report(*sentences):
    """Sentences with the ids that they are about."""
    text, made = "", []
    for words, about in sentences:
        states = tuple(Statement(kind="finding", about=one) for one in about)
        made.append(Sentence(section="findings", start=len(text), end=len(text) + len(words), states=states))
        text += words + " "
    return Report(sections=(ReportSection(name="findings", text=text),), sentences=tuple(made))


def test_a_phrase_is_a_sentence_that_states_the_finding_alone():
    two = (EFFUSION, finding("nodule", drawn(box(0, 0, 3, 3)), number=2))
    told = report(
        ("Small effusion.", ["f1"]), ("Effusion and nodule.", ["f1", "f2"]), ("Small effusion.", ["f1"])
    )
    probes, found = chosen(
        study(0, *two, report=told),
        study(1, NO_EFFUSION),
        ask="phrase",
        targets=("pleural effusion", "nodule"),
    )
    # The control is asked for the words of the other one.
    assert [(probe.place, probe.phrase) for probe in probes] == [
        (0, "Small effusion."),
        (1, "Small effusion."),
    ]
    assert found.skipped == [("s0", "nodule", "no sentence of the report states it alone")]


# ---- on disk --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    root = tmp_path_factory.mktemp("ground")
    lungs = [
        Anatomy(name=f"{side} lung", image="0.png", region=region, annotator="a")
        for side, region in (("right", box(5, 5, 20, 30)), ("left", box(35, 5, 20, 30)))
    ]
    # Two annotators who agree on no pixel.
    apart = finding("pleural effusion", drawn(LEFT, "a"), drawn(RIGHT, "b"))
    ill = [study(0, EFFUSION, anatomy=tuple(lungs)), study(1, EFFUSION), study(2, apart)]
    write_studies(
        root / "studies", [*ill, *(study(n, NO_EFFUSION) for n in range(3, 8))], Provenance(command="test")
    )
    studies = open_studies(root / "studies")
    return root, studies, build_ground(studies, root / "bench", readers="intersection", workers=1)


def test_cases_are_consistent_and_state_their_facts(bench):
    root, _, built = bench
    cases = {case.study: case for case in open_benchmark(root / "bench")}
    assert [fault for case in cases.values() for fault in faults(case)] == []
    case = cases["s0"]
    assert (case.protocol, case.target, case.path, case.patient) == (
        "ground",
        "pleural effusion",
        "present",
        "p0",
    )
    where = case.step("2")
    # 10 to 30 of 60 columns, 20 to 30 of 40 rows.
    assert [found.xyxy for found in where.key.boxes] == [(166.7, 500.0, 500.0, 750.0)]
    facts = GroundCaseFacts.of(case)
    assert facts.rows() == case.facts
    assert case.region(facts.region("truth")).region == box(10, 20, 20, 10)
    assert case.region(facts.region("lungs")).region.area == 2 * 20 * 30
    assert facts.share_of_image == pytest.approx(200 / 2400)
    absent = next(case for case in cases.values() if case.path == "absent")
    assert [step.id for step in absent.steps] == ["1"]
    assert absent.step("1").key.options == ("no",)
    assert built.manifest.counts.cells == {"pleural effusion/absent": 3, "pleural effusion/present": 2}


def test_a_study_that_cannot_be_used_is_listed_and_the_others_are_built(bench):
    root, studies, built = bench
    (target,) = built.build_report.targets
    assert target.left_out == {"no pixel is left of the regions of its readers": 1}
    assert "s2,pleural effusion,no pixel is left" in (root / "bench" / "skipped.csv").read_text()
    with pytest.raises(CarinaError, match=r"study s2, pleural effusion: 2\.png: no pixel .*intersection"):
        build_ground(studies, root / "stopped", readers="intersection", workers=1, on_error="stop")


def test_any_number_of_workers_gives_the_same_bytes_and_a_second_call_changes_nothing(bench):
    root, studies, _ = bench
    build_ground(studies, root / "two", readers="intersection", workers=2)
    for path in sorted((root / "bench").rglob("*.*")):
        assert path.read_bytes() == (root / "two" / path.relative_to(root / "bench")).read_bytes(), path
    before = {path: path.stat().st_mtime_ns for path in (root / "two").rglob("*.parquet")}
    build_ground(studies, root / "two", readers="intersection", workers=1)
    assert before == {path: path.stat().st_mtime_ns for path in (root / "two").rglob("*.parquet")}


def peak_memory(studies, out):
    """Most bytes that Python objects take while a benchmark is built."""
    tracemalloc.start()
    try:
        build_ground(studies, out, workers=1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_studies(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "sort_on_disk", partial(sort_on_disk, run=1 << 16))
    monkeypatch.setattr(build, "PART_SIZE", 64)
    comb = np.zeros((HEIGHT, WIDTH), bool)
    comb[::2] = comb[:, 0] = True
    region = Region.from_mask(comb)
    peaks = []
    for size in (100, 400):
        ill = (study(n, finding("mass", drawn(region))) for n in range(size))
        write_studies(tmp_path / f"studies-{size}", ill, Provenance(command="test"))
        studies = open_studies(tmp_path / f"studies-{size}")
        peaks.append(peak_memory(studies, tmp_path / f"bench-{size}"))
    # Two parts of cases, then seven: of the 300 further cases, less is kept than half of their regions alone.
    assert peaks[1] - peaks[0] < 0.5 * 300 * len(region.counts)


def test_a_build_that_sorts_on_disk_gives_the_same_bytes_and_leaves_nothing_else(bench, monkeypatch):
    root, studies, _ = bench
    monkeypatch.setattr(build, "sort_on_disk", partial(sort_on_disk, run=1))
    build_ground(studies, root / "sorted", readers="intersection", workers=1)
    files = {path.relative_to(root / "bench") for path in (root / "bench").rglob("*")}
    assert {path.relative_to(root / "sorted") for path in (root / "sorted").rglob("*")} == files
    for path in files:
        if (root / "bench" / path).is_file():
            assert (root / "bench" / path).read_bytes() == (root / "sorted" / path).read_bytes(), path


def test_options_are_checked():
    for wrong in (
        {"per_target": 0},
        {"absent": -1},
        {"readers": "mean"},
        {"at_least": 2},
        {"readers": "consensus", "at_least": 0},
        {"box_overlap": 0},
        {"split": "dev"},
        {"ask": "x"},
    ):
        with pytest.raises(CarinaError):
            GroundOptions(**wrong)
    with pytest.raises(CarinaError, match="targets "):
        GroundOptions(targets=("mass", "mass"))


def test_a_question_does_not_reveal_its_answer(bench):
    root, _, _ = bench
    by_path = {}
    for case in open_benchmark(root / "bench"):
        question = case.step("1").question.replace("(1) Yes\n(2) No", "").replace("(1) No\n(2) Yes", "")
        by_path.setdefault(case.path, set()).add(question)
    assert by_path["present"] == by_path["absent"]
    assert np.all([len(words) == 1 for words in by_path.values()])


def test_a_target_may_have_the_short_name_of_a_finding(bench):
    root, studies, _ = bench
    for directory, target in (("short", "effusion"), ("long", "pleural effusion")):
        build_ground(studies, root / directory, targets=[target], workers=1)
    for path in sorted((root / "long").rglob("*.*")):
        assert path.read_bytes() == (root / "short" / path.relative_to(root / "long")).read_bytes(), path
    with pytest.raises(CarinaError, match="named twice"):
        build_ground(studies, root / "both", targets=["effusion", "pleural effusion"])


def test_a_short_name_that_studies_have_themselves_is_kept(tmp_path):
    named = finding("effusion", drawn(box(10, 20, 20, 10)))
    write_studies(tmp_path / "studies", [study(1, named), study(2, EFFUSION)], Provenance(command="test"))
    built = build_ground(tmp_path / "studies", tmp_path / "bench", targets=["effusion"], workers=1)
    assert [item.target for item in built.build_report.targets] == ["effusion"]


def test_an_unknown_target_is_refused_before_anything_is_written(tmp_path):
    studies = write_studies(tmp_path / "studies", [study(1, EFFUSION)], Provenance(command="test"))
    assert studies.counts.studies == 1
    with pytest.raises(CarinaError, match=r"target 'efusion': .*studies\b.*pleural effusion"):
        build_ground(tmp_path / "studies", tmp_path / "probes", targets=["efusion"])
    assert not (tmp_path / "probes").exists()

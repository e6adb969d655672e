"""Building: the same bytes however it is done, what is left out with the reason, and sets that lack something."""

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from carina.cases import NoCasesError, open_benchmark
from carina.cases.faults import faults
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.progress import call_on_advance
from carina.store.resume import lock_directory
from carina.studies import Assessed, Region, open_studies
from carina.trek import Quotas, TrekBuildReport, build_trek

ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}
SMALL = {"seed": 3, "part_size": 16}


def digests(directory: Path):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def studies(made, phantoms, tmp_path_factory):
    """On disk, rows and patients in no order."""
    mixed = sorted(phantoms, key=lambda study: hashlib.md5(study.id.encode()).hexdigest())  # noqa: S324
    return open_studies(made.write(tmp_path_factory.mktemp("trek") / "studies", mixed))


@pytest.fixture(scope="module")
def bench(studies):
    directory = studies.directory.parent / "bench"
    build_trek(studies, directory, **SMALL, workers=1)
    return open_benchmark(directory)


@pytest.fixture
def place(studies, tmp_path):
    """Somewhere beside the studies: a benchmark says where its images lie, so bytes are alike only there."""
    return studies.directory.parent / tmp_path.name


def build(made, tmp_path, studies, **options):
    """A benchmark of these studies, with its cases by study."""
    directory = made.write(tmp_path / "studies", studies)
    built = build_trek(open_studies(directory), tmp_path / "bench", **options, workers=1)
    return built, {case.study: case for case in open_benchmark(tmp_path / "bench")}


# ---- what is there afterwards ----------------------------------------------------------------------------------------


def test_every_study_has_its_conversation_in_the_order_of_the_set(studies, bench):
    assert [case.study for case in bench] == [study.id for study in studies]
    assert [fault for case in bench for fault in faults(case)] == []
    assert len(bench.manifest.parts) == -(-len(studies) // 16)
    assert [part.rows for part in bench.manifest.parts] == [16] * (len(studies) // 16) + [len(studies) % 16]
    counts = bench.manifest.counts
    assert counts.cases == len(studies)
    assert counts.steps == sum(len(case.steps) for case in bench)
    assert list(bench.check(images=False)) == []


def test_the_build_report_counts_images_that_are_not_shown_because_their_view_is_unknown(made, tmp_path):
    views = {"a": ("unknown",), "b": ("unknown",) * 3, "c": ("PA", "unknown"), "d": ("PA", "PA", "lateral")}
    studies = [
        made.study(made.finding("mass", zones=("left upper",)), name=name, patient=name, views=given)
        for name, given in views.items()
    ]
    built, _ = build(made, tmp_path, studies)
    assert built.build_report.images_of_unknown_view == 0 + 2 + 1 + 0


def test_the_build_report_counts_conversations_and_questions(studies, bench):
    report = msgspec.json.decode((bench.directory / "build.json").read_bytes(), type=TrekBuildReport)
    assert report.studies == report.conversations == report.surveyed == len(studies)
    assert report.questions == sum(len(case.steps) for case in bench)
    assert report.with_reference == sum(case.reference_study is not None for case in bench)
    assert report.with_later == sum(case.later_study is not None for case in bench)
    assert report.with_reference > 10
    assert report.skipped == {}
    assert (bench.directory / "skipped.csv").read_text() == "study,reason\n"


def test_neighbours_are_those_in_time_whatever_the_rows(made, studies, bench):
    known = {study.id: study for study in studies}
    linked = 0
    for case in bench:
        before, after = made.neighbours(known[case.study], list(known.values()))
        if case.reference_study is not None:
            assert case.reference_study == before.id
            linked += 1
        if case.later_study is not None:
            assert case.later_study == after.id
            keys = {image.key for image in case.images}
            assert not keys & {image.key for image in after.images}
    assert linked > 10


def test_conversations_are_those_of_the_study_alone_given_the_survey(made, studies, bench):
    """A part boundary between a study and its neighbour changes nothing."""
    known = {study.id: study for study in studies}
    among = made.survey(list(studies), choices=Quotas().choices, uncertain=Quotas().uncertain)
    for case in list(bench)[::7]:
        before, after = made.neighbours(known[case.study], list(known.values()))
        again = made.talk(known[case.study], before, after, among=among, seed=3)
        assert msgspec.json.encode(case) == msgspec.json.encode(again)


# ---- the same bytes --------------------------------------------------------------------------------------------------


def test_two_workers_write_the_same_bytes(studies, bench, place):
    told = []
    build_trek(studies, place, **SMALL, workers=2, progress=call_on_advance(told.append))
    assert digests(place) == digests(bench.directory)
    assert told == [part.rows for part in bench.manifest.parts]


def test_another_seed_gives_other_questions(studies, bench, tmp_path):
    build_trek(studies, tmp_path / "other", seed=4, part_size=16, workers=1)
    other = open_benchmark(tmp_path / "other")
    assert [case.id for case in other] == [case.id for case in bench]
    assert all(
        [step.question for step in a.steps] != [step.question for step in b.steps]
        for a, b in zip(other, bench, strict=True)
    )


KILLED = """
import os, signal, sys
from pathlib import Path
from carina.store.progress import call_on_advance
from carina.studies import Assessed, open_studies
from carina.trek import build_trek

left = 2
def ready(_rows):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

build_trek(open_studies(sys.argv[1]), Path(sys.argv[2]), seed=3, part_size=16,
           workers=int(sys.argv[3]), progress=call_on_advance(ready))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_resumes_and_gives_the_same_bytes(studies, bench, place, workers):
    broken = place
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(studies.directory), str(broken), str(workers)],
        env=ONE_THREAD,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (broken / "bench.json").exists()
    parts = sorted(path.name for path in broken.rglob("*.parquet"))
    assert len(parts) >= 2
    before = {path: path.stat().st_mtime_ns for path in broken.rglob("*.parquet")}
    if len(parts) == len(bench.manifest.parts):
        # All were ready ahead of what was asked for: take the last away.
        lost = max(before)
        lost.unlink()
        del before[lost]
    build_trek(studies, broken, **SMALL, workers=1)
    assert digests(broken) == digests(bench.directory)
    # What was ready was not made again.
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_finished_build_changes_no_file(studies, bench):
    before = {path: path.stat().st_mtime_ns for path in bench.directory.rglob("*")}
    told = []
    built = build_trek(studies, bench.directory, **SMALL, progress=call_on_advance(told.append), workers=1)
    assert {path: path.stat().st_mtime_ns for path in bench.directory.rglob("*")} == before
    assert built.manifest == bench.manifest
    assert sum(told) == built.build_report.conversations == len(studies)


def some_part(directory):
    return sorted(directory.rglob("*.parquet"))[1]


@pytest.mark.parametrize(
    "harm",
    [
        lambda directory: some_part(directory).write_bytes(some_part(directory).read_bytes()[:-200]),
        lambda directory: some_part(directory).write_bytes(b"PAR1 nothing PAR1"),
        lambda directory: some_part(directory).unlink(),
        lambda directory: (directory / "build.json").unlink(),
        lambda directory: (directory / "build.json").write_text("{"),
        lambda directory: (directory / "bench.json").unlink(),
    ],
)
def test_a_damaged_part_is_made_again(studies, bench, place, harm):
    directory = place
    shutil.copytree(bench.directory, directory)
    before = digests(directory)
    harm(directory)
    assert digests(directory) != before
    build_trek(studies, directory, **SMALL, workers=1)
    assert digests(directory) == before == digests(bench.directory)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_a_place_that_holds_another_benchmark_is_refused(studies, bench):
    before = digests(bench.directory)
    for other in ({**SMALL, "seed": 4}, {**SMALL, "frame": "pixel"}):
        with pytest.raises(BenchmarkError, match=rf"{bench.directory.name}: .*\b{len(studies)} cases\b"):
            build_trek(studies, bench.directory, **other, workers=1)
    assert digests(bench.directory) == before


def test_a_place_within_the_study_set_is_refused(studies):
    for place in (studies.directory, studies.directory / "bench"):
        with pytest.raises(CarinaError, match=f"{place.name}: "):
            build_trek(studies, place, **SMALL, workers=1)


def test_a_place_where_another_process_writes_is_refused(studies, tmp_path):
    place = tmp_path / "bench"
    place.mkdir()
    with lock_directory(place):
        code = (
            "import sys; from pathlib import Path; from carina.studies import open_studies;"
            "from carina.trek import *; build_trek(open_studies(sys.argv[1]), Path(sys.argv[2]), workers=1)"
        )
        busy = subprocess.run(
            [sys.executable, "-c", code, str(studies.directory), str(place)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert busy.returncode == 1
    assert "another process is writing here" in busy.stderr


# ---- what is left out ------------------------------------------------------------------------------------------------


def contradictory(made):
    """Advice by a sentence that the report does not have."""
    return made.study(
        made.finding("mass"),
        name="torn",
        report=made.report("A mass."),
        recommendations=(made.recommendation(id="r", action="chest CT", about=("f-mass",), evidence=(77,)),),
    )


def test_studies_without_a_conversation_are_listed_with_the_reason(made, tmp_path):
    unseen = made.replace(made.study(made.finding("mass"), name="unseen"), images=())
    silent = made.study(name="silent", assessed=Assessed())
    requested = made.study(name="requested", report=made.report(indication="Cough."), assessed=Assessed())
    empty = made.study(name="empty", report=made.report(findings="  "), assessed=Assessed())
    odd = [contradictory(made), unseen, silent, requested, empty]
    studies = [*made.crowd(30), *odd]
    built, cases = build(made, tmp_path, studies)
    assert set(cases) == {study.id for study in made.crowd(30)}
    rows = list(csv.reader((tmp_path / "bench" / "skipped.csv").read_text().splitlines()))
    assert rows[0] == ["study", "reason"]
    reasons = dict(rows[1:])
    assert [row[0] for row in rows[1:]] == sorted(study.id for study in odd)
    assert reasons["unseen"] == "no image"
    assert reasons["torn"] == "its records contradict each other"
    assert reasons["silent"] == reasons["empty"] == reasons["requested"]
    assert "stated" in reasons["silent"]
    told = json.loads((tmp_path / "bench" / "build.json").read_text())
    assert told["skipped"] == {
        reason: list(reasons.values()).count(reason) for reason in set(reasons.values())
    }
    assert built.build_report.studies == 35
    assert built.build_report.conversations == 30


def test_a_contradiction_can_stop_the_build_and_names_the_study(made, tmp_path):
    directory = made.write(tmp_path / "studies", [*made.crowd(10), contradictory(made)])
    with pytest.raises(CarinaError, match="study torn: "):
        build_trek(open_studies(directory), tmp_path / "bench", on_error="stop", workers=1)
    assert not (tmp_path / "bench" / "bench.json").exists()
    # What only cannot be asked about is no contradiction.
    fine = made.write(tmp_path / "fine", [*made.crowd(10), made.study(name="silent", assessed=Assessed())])
    assert build_trek(open_studies(fine), tmp_path / "other", on_error="stop", workers=1).build_report.skipped


@pytest.mark.parametrize(
    "odd",
    [
        lambda m: m.study(m.finding("mass", evidence=(9,)), report=m.report("A mass.", "A mass."), name="x"),
        lambda m: m.study(m.finding("mass", boxed=Region.from_mask(np.ones((7, 7), bool))), name="x"),
        lambda m: m.study(m.finding("mass", number="f1"), m.finding("fracture", number="f1"), name="x"),
        lambda m: m.study(
            m.finding("mass"),
            name="x",
            relations=(m.relation(id="r", subject="f-mass", kind="causes", object="f-mass", evidence=(5,)),),
        ),
        lambda m: m.study(m.finding("mass", zones=("somewhere",)), name="x"),
        lambda m: m.study(m.finding(""), name="x"),
        lambda m: m.study(m.finding("mass", "uncertain", trend="resolved"), name="x"),
    ],
)
def test_odd_records_never_end_the_build_nor_give_a_faulty_case(made, tmp_path, odd):
    built, cases = build(made, tmp_path, [*made.crowd(20), odd(made)])
    assert built.build_report.conversations >= 20
    assert [fault for case in cases.values() for fault in faults(case)] == []
    for step in (s for case in cases.values() for s in case.steps):
        for box in step.key.boxes:
            assert 0 <= box.xyxy[0] < box.xyxy[2] <= 100
            assert 0 <= box.xyxy[1] < box.xyxy[3] <= 100


def test_a_neighbour_without_a_conversation_is_no_reference(made, tmp_path):
    before = made.replace(made.study(made.finding("mass"), name="a"), images=())
    now = made.study(made.finding("fracture"), name="b", order=1)
    _, cases = build(made, tmp_path, [before, now, *made.crowd(10)])
    assert cases["b"].reference_study is None


def test_a_set_of_one_study_is_built(made, tmp_path):
    built, cases = build(made, tmp_path, [made.study(made.finding("mass"))])
    assert built.build_report.conversations == len(cases) == 1


def test_a_set_of_no_study_is_an_error_with_what_was_written(made, tmp_path):
    with pytest.raises(NoCasesError, match="none of 0 studies") as caught:
        build(made, tmp_path, [])
    assert caught.value.benchmark.build_report.conversations == 0


def test_only_studies_of_the_chosen_split_are_used(made, tmp_path):
    studies = [
        made.study(made.finding("mass"), name=f"{split}{n}", split=split, patient=f"{split}{n}")
        for split in ("train", "test")
        for n in range(4)
    ]
    built, cases = build(made, tmp_path, studies, split="test")
    assert set(cases) == {f"test{n}" for n in range(4)}
    assert built.build_report.studies == built.build_report.surveyed == 4


# ---- sets that lack something ----------------------------------------------------------------------------------------


def only_report(study):
    """What somebody has who has nothing but text and images."""
    bare = msgspec.structs.replace(
        study.report, sentences=tuple(msgspec.structs.replace(s, states=()) for s in study.report.sentences)
    )
    return msgspec.structs.replace(
        study, findings=(), devices=(), anatomy=(), relations=(), recommendations=(), report=bare
    )


def test_findings_are_read_from_reports_where_studies_have_none(made, phantoms, tmp_path):
    _, cases = build(made, tmp_path, [only_report(study) for study in phantoms])
    known = {study.id: study for study in phantoms}
    assert len(cases) > 0.95 * len(phantoms)
    assert [fault for case in cases.values() for fault in faults(case)] == []
    stages = {step.stage for case in cases.values() for step in case.steps}
    assert {1, 2, 3, 5, 7, 8} <= stages
    assert not any(step.format == "boxes" for case in cases.values() for step in case.steps)
    right = total = 0
    for name, case in cases.items():
        truth = {t.name: t.certainty for t in (*known[name].findings, *known[name].devices)}
        for step in case.steps:
            if step.task in ("presence", "device presence") and step.key.label is not None:
                said = {"yes": "present", "no": "absent", "uncertain": "uncertain"}[step.key.label]
                right += truth.get(made.targets(step)[0], "absent") == said
                total += 1
            for mark in step.evidence:
                assert mark.sentence >= 0
    assert total > 40
    assert right / total > 0.93


def test_a_set_without_reports_still_ends_with_one(made, phantoms, tmp_path):
    _, cases = build(
        made,
        tmp_path,
        [msgspec.structs.replace(study, report=None, indication=None) for study in phantoms[:30]],
    )
    assert len(cases) == 30
    for case in cases.values():
        (*_, last) = case.steps
        assert last.stage == 8
        assert all(step.evidence == () for step in case.steps if step.stage == 8)
        assert not any(step.task == "vignette" or step.context for step in case.steps)


def test_a_set_without_regions_has_no_boxes(made, phantoms, tmp_path):
    def bare(study):
        return msgspec.structs.replace(
            study,
            anatomy=(),
            findings=tuple(msgspec.structs.replace(f, annotations=()) for f in study.findings),
            devices=tuple(msgspec.structs.replace(d, annotations=()) for d in study.devices),
        )

    _, cases = build(made, tmp_path, [bare(study) for study in phantoms[:20]])
    assert not any(
        s.format == "boxes" or s.task == "box content" for case in cases.values() for s in case.steps
    )


def test_unknown_views_and_names_outside_the_vocabulary_are_accepted(made, phantoms, tmp_path):
    def foreign(study):
        images = (msgspec.structs.replace(study.images[0], view="unknown", quality=None),)
        return msgspec.structs.replace(
            study,
            images=images,
            anatomy=tuple(a for a in study.anatomy if a.image == images[0].key),
            findings=tuple(
                msgspec.structs.replace(
                    f,
                    name=f"{f.name} of another kind",
                    annotations=tuple(a for a in f.annotations if a.image == images[0].key),
                )
                for f in study.findings
            ),
            devices=(),
        )

    _, cases = build(made, tmp_path, [foreign(study) for study in phantoms])
    assert len(cases) == len(phantoms)
    assert [fault for case in cases.values() for fault in faults(case)] == []
    steps = [step for case in cases.values() for step in case.steps]
    assert not any(step.stage == 1 for step in steps)
    assert any(step.format == "boxes" for step in steps)
    labels = [
        made.label(step) for step in steps if step.task == "presence" and made.label(step) in ("yes", "no")
    ]
    assert {"yes", "no"} == set(labels)
    assert all(
        "of another kind" in name for step in steps if step.task == "presence" for name in made.targets(step)
    )

"""From a study set to a benchmark: the same bytes however it is made, quotas, and reasons for what is missing."""

import csv
import hashlib
import json
from collections import Counter, defaultdict

import msgspec
import numpy as np
import pytest

from carina.cases import NoCasesError, open_benchmark
from carina.cases.faults import faults
from carina.percept import LESIONS, build, build_percept
from carina.percept.build import BuildOptions
from carina.percept.journal import FILE
from carina.percept.rules import Rules
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.progress import call_on_advance
from carina.studies import Region, open_studies

TARGETS = ("edema", "effusion", "cardiomegaly")
OPTIONS = {"seed": 4, "per_cell": 3, "targets": TARGETS}
replace = msgspec.structs.replace


def digests(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def skipped(directory):
    with (directory / "skipped.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def studies(chest, tmp_path_factory):
    return open_studies(chest.write_set(tmp_path_factory.mktemp("sets") / "studies", chest.population()))


@pytest.fixture(scope="module")
def built(studies):
    """A benchmark beside the studies, and its report."""
    directory = studies.directory.parent / "bench"
    return build_percept(studies, directory, **OPTIONS, workers=1), open_benchmark(directory)


def test_every_cell_has_the_requested_number_of_cases(built):
    made, bench = built
    assert made.build_report.unfilled == ()
    assert Counter((case.target, case.path) for case in bench) == {
        (target, path): 3 for target in TARGETS for path in ("LF", "RF", "RR")
    }
    assert made.manifest.counts.cases == len(bench) == 27
    assert made.manifest.counts.steps == 2 * 3 * (9 + 6 + 1) + 3 * (5 + 2 + 1)
    assert [fault for case in bench for fault in faults(case)] == []
    assert list(bench.check(images=False)) == []


def test_each_patient_has_at_most_one_case_of_a_lesion(built):
    _, bench = built
    pairs = Counter((case.target, case.patient) for case in bench)
    assert set(pairs.values()) == {1}
    # Who has the lesion is never asked about as if he had not.
    for case in bench.where(path="LF"):
        assert not case.study.startswith(case.target)
    for path in ("RF", "RR"):
        assert all(case.study.startswith(case.target) for case in bench.where(path=path))


def test_constant_answers_are_at_chance_on_every_question_of_one_choice(built):
    _, bench = built
    counts = defaultdict(Counter)
    for case in bench:
        for step in case.steps:
            if not step.multiple:
                counts[case.cell, step.id, len(step.options)].update(step.right)
    for (cell, step, options), places in counts.items():
        found = [places[n] for n in range(1, options + 1)]
        assert max(found) - min(found) <= 1, (cell, step, found)


def test_rows_are_in_the_order_of_ids(built):
    _, bench = built
    for target in TARGETS:
        ids = list(bench.where(target=target).ids())
        assert ids == sorted(ids)


def test_no_path_of_this_machine_is_in_a_benchmark(built):
    _, bench = built
    manifest = json.loads((bench.directory / "bench.json").read_text())
    assert manifest["command"] == "carina build percept studies --per-cell 3 --seed 4"
    assert manifest["image_root"] == "../studies"
    assert manifest["options"]["rules"] == msgspec.to_builtins(Rules())
    for path in bench.directory.rglob("*"):
        if path.is_file():
            assert str(bench.directory.parent).encode() not in path.read_bytes()
    assert sorted(path.name for path in bench.directory.iterdir()) == [
        "bench.json",
        "build.json",
        "cases",
        "skipped.csv",
    ]


def test_any_number_of_workers_gives_the_same_bytes(studies, built):
    _, bench = built
    other = studies.directory.parent / "two"
    build_percept(studies, other, **OPTIONS, workers=2)
    assert digests(other) == digests(bench.directory)


def test_any_order_of_the_studies_gives_the_same_cases(chest, built, tmp_path):
    _, bench = built
    some = chest.population()
    order = np.random.default_rng(1).permutation(len(some))
    shuffled = open_studies(chest.write_set(tmp_path / "studies", [some[n] for n in order]))
    build_percept(shuffled, tmp_path / "bench", **OPTIONS, workers=1)
    assert list(open_benchmark(tmp_path / "bench")) == list(bench)


def test_an_interrupted_build_resumes_and_gives_the_same_bytes(studies, built, monkeypatch):
    _, bench = built
    directory = studies.directory.parent / "interrupted"
    real, done = build._analyse_one, []

    def stops(task):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(task)
        return real(task)

    monkeypatch.setattr(build, "_analyse_one", stops)
    with pytest.raises(KeyboardInterrupt):
        build_percept(studies, directory, **OPTIONS, workers=1)
    assert (directory / FILE).exists()
    assert not (directory / "bench.json").exists()
    # The last record was torn, too.
    content = (directory / FILE).read_bytes()
    (directory / FILE).write_bytes(content[:-3])
    again = []
    monkeypatch.setattr(build, "_analyse_one", lambda task: again.append(task) or real(task))
    build_percept(studies, directory, **OPTIONS, workers=1)
    assert again[0] == done[4]
    assert not set(again) & set(done[:4])
    assert digests(directory) == digests(bench.directory)


def test_a_finished_build_is_not_repeated(studies, built, monkeypatch):
    made, bench = built
    before = digests(bench.directory)
    monkeypatch.setattr(build, "find_candidates", None)
    assert build_percept(studies, bench.directory, **OPTIONS, workers=1).build_report == made.build_report
    assert digests(bench.directory) == before


def test_another_build_in_the_same_place_is_refused(studies, built):
    _, bench = built
    before = digests(bench.directory)
    for other in (
        {"seed": 5, "per_cell": 3, "targets": TARGETS},
        {"seed": 4, "per_cell": 2, "targets": TARGETS},
        {"seed": 4, "per_cell": 3, "targets": TARGETS, "rules": Rules(edit_share=0.1)},
    ):
        with pytest.raises(BenchmarkError, match=rf"{bench.directory.name}: .*\b27 cases\b"):
            build_percept(studies, bench.directory, **other, workers=1)
    assert digests(bench.directory) == before


def test_two_processes_do_not_write_in_one_place(studies, monkeypatch):
    directory = studies.directory.parent / "shared"
    options = {"per_cell": 1, "targets": ("cardiomegaly",)}
    real = build.find_candidates

    def second(*args, **kwargs):
        with pytest.raises(BenchmarkError, match=f"{directory.name}: "):
            build_percept(studies, directory, **options, workers=1)
        return real(*args, **kwargs)

    monkeypatch.setattr(build, "find_candidates", second)
    build_percept(studies, directory, **options, workers=1)


def test_the_same_seed_gives_the_same_cases_and_another_seed_others(studies, tmp_path):
    options = {"seed": 4, "per_cell": 1, "targets": ("edema",)}
    for name in ("a", "b"):
        build_percept(studies, tmp_path / name, **options, workers=1)
    assert list(open_benchmark(tmp_path / "a")) == list(open_benchmark(tmp_path / "b"))
    other = {"seed": 5, "per_cell": 1, "targets": ("edema",)}
    build_percept(studies, tmp_path / "c", **other, workers=1)
    assert list(open_benchmark(tmp_path / "a")) != list(open_benchmark(tmp_path / "c"))


def test_ineligible_studies_are_listed_with_the_reason_and_the_rest_is_built(chest, tmp_path):
    good = chest.population()
    mask = chest.lesions()["lower"]
    nothing, pixel = np.zeros_like(mask), np.zeros_like(mask)
    pixel[180, 75] = True

    def bad(name, *findings, **more):
        return chest.study(*findings, name=name, **more)

    edema = lambda *masks, **more: chest.finding("edema", *masks, **more)  # noqa: E731
    unfit = [
        bad("outside", edema(Region.full(512, 512))),
        bad("empty", edema(nothing)),
        bad("lungless", edema(mask), fields=()),
        bad("one lung", edema(mask), fields=chest.lungs()[:1]),
        bad("pixel", edema(pixel)),
        bad("box", edema(mask, drawn="box")),
        bad("hedged", edema(mask, certainty="uncertain")),
        bad("undrawn", edema()),
        bad("lateral", edema(mask), view="lateral"),
        bad("damaged", edema(Region(256, 256, "\x00\x00"))),
        bad("swapped", edema(mask), fields=chest.lungs()[::-1]),
    ]
    studies = open_studies(chest.write_set(tmp_path / "studies", [*unfit, *good]))
    # So many are wanted that every study is looked at.
    options = {"seed": 4, "per_cell": 100, "targets": ("edema",)}
    made = build_percept(studies, tmp_path / "bench", **options, workers=1)
    reasons = {row["study"]: row["reason"] for row in skipped(tmp_path / "bench")}
    assert {name: reasons[name] for name in (study.id for study in unfit)} == {
        "outside": "region outside its image",
        "empty": "empty mask",
        "lungless": "no lungs",
        "one lung": "no lungs",
        "pixel": "lesion too small",
        "box": "drawn as a box",
        "hedged": "uncertain",
        "undrawn": "not drawn",
        "lateral": "no frontal image",
        "damaged": "damaged region",
        "swapped": "implausible lungs",
    }
    details = {row["study"]: row["detail"] for row in skipped(tmp_path / "bench")}
    assert details["outside"] == "finding 'f1' is of an image of 512 x 512, the image is 256 x 256"
    paths = Counter(case.path for case in open_benchmark(tmp_path / "bench"))
    assert paths["LF"] == 24
    assert paths["RF"] + paths["RR"] == 12 - sum(name.startswith("edema") for name in reasons)
    assert min(paths.values()) >= 3
    cells = {cell.path: cell for cell in made.build_report.cells}
    assert cells["RR"].reasons["no lungs"] == 2
    assert cells["RR"].wanted == 100
    assert {cell.path for cell in made.build_report.unfilled} == {"LF", "RF", "RR"}


def test_skipped_studies_are_sorted_and_every_row_has_four_fields(built):
    _, bench = built
    rows = skipped(bench.directory)
    assert (bench.directory / "skipped.csv").read_text().splitlines()[0] == "study,target,reason,detail"
    assert [(row["target"], row["study"]) for row in rows] == sorted(
        (row["target"], row["study"]) for row in rows
    )


def test_nothing_to_build_leaves_an_empty_benchmark_with_reasons(chest, tmp_path):
    mask = chest.lesions()["lower"]
    none = [chest.study(chest.finding("edema", mask), name=f"n{n}", fields=()) for n in range(3)]
    studies = open_studies(chest.write_set(tmp_path / "studies", none))
    with pytest.raises(NoCasesError, match="none of 3 studies can be asked about") as caught:
        build_percept(studies, tmp_path / "bench", per_cell=1, targets=("edema",), workers=1)
    made = caught.value.benchmark
    assert made.manifest.counts.cases == 0
    assert [cell.built for cell in made.build_report.cells] == [0, 0, 0]
    assert [row["reason"] for row in skipped(tmp_path / "bench")] == ["no lungs"] * 3
    assert len(open_benchmark(tmp_path / "bench")) == 0


def test_a_patient_with_several_studies_gives_one_case_a_lesion(chest, tmp_path):
    same = [
        replace(study, patient=f"p{n % 4}") for n, study in enumerate(chest.population(targets=("edema",)))
    ]
    studies = open_studies(chest.write_set(tmp_path / "studies", same))
    build_percept(studies, tmp_path / "bench", per_cell=5, targets=("edema",), workers=1)
    patients = Counter(case.patient for case in open_benchmark(tmp_path / "bench"))
    assert set(patients) <= {"p0", "p1", "p2", "p3"}
    assert set(patients.values()) == {1}
    assert len(patients) >= 3


def test_progress_advances_once_for_each_analysed_lesion(studies, tmp_path):
    told = []
    options = {"seed": 4, "per_cell": 1, "targets": ("edema", "effusion")}
    build_percept(studies, tmp_path / "bench", **options, progress=call_on_advance(told.append), workers=1)
    # Three of each kind are enough; the others are done without being analysed.
    assert told[:-1] == [1] * 6
    wanted = {"edema", "pleural effusion"}
    candidates = sum(
        len({finding.name for finding in study.findings if finding.certainty == "present"} & wanted)
        for study in studies
    )
    assert sum(told) == candidates


def test_only_studies_of_the_chosen_split_are_used(studies, tmp_path):
    options = {"seed": 4, "per_cell": 2, "targets": ("edema",), "split": "test"}
    build_percept(studies, tmp_path / "bench", **options, workers=1)
    bench = open_benchmark(tmp_path / "bench")
    assert {case.split for case in bench} == {"test"}
    assert {case.path for case in bench} == {"LF", "RF", "RR"}


def test_a_lesion_may_have_the_name_that_studies_have_for_it(studies, tmp_path):
    for directory, target in (("short", "effusion"), ("long", "pleural effusion")):
        build_percept(studies, tmp_path / directory, per_cell=1, targets=[target], workers=1)
    assert digests(tmp_path / "short") == digests(tmp_path / "long")
    with pytest.raises(CarinaError, match="named twice"):
        build_percept(studies, tmp_path / "both", targets=["effusion", "pleural effusion"])


def test_options_are_checked_when_they_are_made():
    with pytest.raises(CarinaError, match=r"target 'nodule': .* cardiomegaly, "):
        BuildOptions(targets=("nodule",))
    with pytest.raises(CarinaError, match="targets edema, edema"):
        BuildOptions(targets=("edema", "edema"))
    assert BuildOptions().targets == tuple(LESIONS)
    assert len(BuildOptions().targets) == 7


@pytest.mark.parametrize("name", ["build.json", "cases/part-00000.parquet"])
@pytest.mark.parametrize("content", [None, b"{"])
def test_a_damaged_benchmark_is_built_again(studies, tmp_path, name, content):
    options = {"seed": 4, "per_cell": 1, "targets": ("cardiomegaly",)}
    build_percept(studies, tmp_path / "bench", **options, workers=1)
    damaged = tmp_path / "bench" / name
    before = damaged.read_bytes()
    if content is None:
        damaged.unlink()
    else:
        damaged.write_bytes(content)
    build_percept(studies, tmp_path / "bench", **options, workers=1)
    assert damaged.read_bytes() == before
    assert list(open_benchmark(tmp_path / "bench").check(images=False)) == []


def test_a_wrong_split_is_refused():
    with pytest.raises(CarinaError, match=r"split 'tset': .* train, val, test"):
        BuildOptions(split="tset")


def test_reasons_for_missing_lesion_free_cases_are_counted(studies, tmp_path):
    options = {"seed": 4, "per_cell": 1000, "targets": ("edema",)}
    built = build_percept(studies, tmp_path / "bench", **options, workers=1)
    free = next(cell for cell in built.build_report.cells if cell.path == "LF")
    assert free.candidates >= free.built + sum(free.reasons.values())

"""Several runs in one call, from Python values and from a file."""

import os
from contextlib import contextmanager

import pytest
import yaml

import carina
from carina.runs import open_run
from carina.store.errors import CarinaError


def names(runs):
    return [one.path.name for one in runs]


def test_every_combination_is_a_run_in_a_directory_of_its_own(bench, tmp_path):
    runs = carina.run_all(
        bench.directory,
        [
            "builtin/oracle",
            {"model": "builtin/majority", "blind": True},
            {"model": "builtin/random", "name": "chance"},
        ],
        tmp_path / "runs",
        histories=["own", "gold"],
        options={"limit": 2, "seed": 3},
    )
    assert names(runs) == [
        f"bench-{model}-{history}"
        for model in ("builtin-oracle", "builtin-majority-blind", "chance")
        for history in ("own", "gold")
    ]
    assert sorted(names(runs)) == sorted(path.name for path in (tmp_path / "runs").iterdir())
    infos = [open_run(one).info for one in runs]
    assert [(info.model, info.blind, info.policy.history) for info in infos[2:4]] == [
        ("builtin/majority", True, "own"), ("builtin/majority", True, "gold"),
    ]  # fmt: skip
    assert {(info.selection["limit"], info.selection["seed"]) for info in infos} == {(2, 3)}
    assert (len(runs), runs[0].info.model, runs.errors) == (6, "builtin/oracle", {})
    frame = runs.to_frame()
    assert frame["run"].unique(maintain_order=True).to_list() == names(runs)
    assert frame.filter(run=names(runs)[0]).drop("run", "model", "history").equals(runs[0].summary())


def test_options_of_one_model_go_before_those_of_all(bench, tmp_path):
    models = ["builtin/oracle", {"model": "builtin/random", "limit": 1, "max_side": 16}]
    first, second = carina.run_all(bench.directory, models, tmp_path / "runs", options={"limit": 2})
    assert (first.counts.cases, second.counts.cases) == (2, 1)
    assert (first.info.max_side, second.info.max_side) == (None, 16)


def test_one_that_fails_does_not_stop_the_others_and_the_call_resumes(bench, tmp_path):
    asked = []

    def answer(messages):
        asked.append(len(messages))
        return "Answer: 1"

    models = ["hf:nowhere", answer]
    for _ in range(2):
        runs = carina.run_all(bench.directory, models, tmp_path / "runs", options={"limit": 2})
        assert names(runs) == ["bench-answer-own"]
        ((path, reason),) = runs.errors.items()
        assert path == tmp_path / "runs" / "bench-hf-nowhere-own"
        assert "nowhere: no such folder" in reason
    assert len(asked) == 8  # the steps of the first two cases, once


def test_a_finished_run_is_skipped_without_reading_its_log(bench, tmp_path):
    (one,) = carina.run_all(bench.directory, "builtin/oracle", tmp_path / "runs")
    log = one.path / "steps-00.jsonl"
    before = log.stat()
    log.write_text("not even a log")
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    (again,) = carina.run_all(bench.directory, "builtin/oracle", tmp_path / "runs")
    assert again.info == one.info
    assert again.counts == one.counts


def test_a_run_with_failed_cases_is_not_skipped(bench, tmp_path):
    fails = True

    def answer(messages):
        if fails and "3a" in messages[-1].text:
            raise TimeoutError
        return "Answer: 1"

    (first,) = carina.run_all(bench.directory, answer, tmp_path / "runs")
    assert len(first.failures) == 4
    fails = False
    (second,) = carina.run_all(bench.directory, answer, tmp_path / "runs")
    assert second.failures == ()


def test_there_is_one_progress_display_for_all_cases(bench, tmp_path):
    opened, done = [], []

    @contextmanager
    def progress(title, total):
        opened.append((title, total))
        yield lambda number=1, /, *, asked=0, failed=0: done.append(number)  # noqa: ARG005

    models = ["builtin/oracle", "builtin/random"]
    for _ in range(2):
        carina.run_all(bench.directory, models, tmp_path / "runs", options={"limit": 3}, progress=progress)
    assert opened == [("Cases", 6)] * 2
    assert sum(done) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"limt": 3}}, "options: unknown key 'limt'; did you mean 'limit'?"),
        ({"options": {"progress": None}}, "options: unknown key 'progress'"),
        ({"models": [{"model": "builtin/oracle", "temprature": 1}]}, "did you mean 'temperature'?"),
        ({"models": [{"limit": 1}]}, "lacks the key model"),
        ({"models": ["builtin/orakel"]}, "Did you mean builtin/oracle?"),
        ({"models": ["builtin/oracle"] * 2}, "two runs would have the directory"),
        ({"histories": ["own", "silver"]}, "found ['own', 'silver']"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(bench, tmp_path, change, message):
    given = {"benchmarks": bench.directory, "models": "builtin/oracle", "out": tmp_path / "runs"} | change
    with pytest.raises(CarinaError) as caught:
        carina.run_all(**given)
    assert message in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_run_is_no_place_for_several(bench, tmp_path):
    one = carina.run(bench, "builtin/oracle", tmp_path / "run", limit=1)
    with pytest.raises(CarinaError, match="is a run; give a directory that can hold several"):
        carina.run_all(bench.directory, "builtin/oracle", one.path)


# ---- files ----------------------------------------------------------------------------------------------------------


def write(path, **content):
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_file_describes_the_same(bench, tmp_path):
    file = write(
        tmp_path / "experiment.yaml",
        benchmarks=[str(bench.directory)],
        models=["builtin/oracle", {"model": "builtin/random", "name": "chance", "limit": 1}],
        histories=["own", "none"],
        options={"limit": 2},
        out=str(tmp_path / "runs"),
    )
    runs = carina.run_experiment(file)
    expected = [
        f"bench-{name}-{history}" for name in ("builtin-oracle", "chance") for history in ("own", "none")
    ]
    assert names(runs) == expected
    assert [one.counts.cases for one in runs] == [2, 2, 1, 1]
    assert carina.run_experiment(file, tmp_path / "other").path == tmp_path / "other"


def test_a_system_prompt_of_a_file_is_that_of_a_file(bench, tmp_path):
    (tmp_path / "short.txt").write_text("Answer with one letter.")
    file = write(
        tmp_path / "experiment.yaml",
        benchmarks=str(bench.directory),
        models=["builtin/oracle", {"model": "builtin/random", "system_prompt": str(tmp_path / "none.txt")}],
        options={"limit": 1, "system_prompt": str(tmp_path / "short.txt")},
        out=str(tmp_path / "runs"),
    )
    runs = carina.run_experiment(file)
    assert set(runs[0].info.system.values()) == {"Answer with one letter."}
    (reason,) = runs.errors.values()
    assert "none.txt" in reason


def test_progress_counts_the_cases_of_the_split_that_is_asked(bench, tmp_path):
    counted = []

    @contextmanager
    def progress(_title, total):
        counted.append(total)
        yield lambda *_, **__: None

    options = {"split": "test"}
    carina.run_all(bench.directory, "builtin/oracle", tmp_path / "runs", options=options, progress=progress)
    assert counted == [bench.table(["split"]).collect()["split"].eq("test").sum()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("benchmarks: [b]\nmodel: [m]\nout: runs", "unknown key 'model'; did you mean 'models'?"),
        ("models: [builtin/oracle]\nout: runs", "benchmarks is missing"),
        ("benchmarks: [b]\nout: runs", "models is missing"),
        ("benchmarks: [b]\nmodels: [builtin/oracle]", "out is missing"),
        ("benchmarks: [b]\nmodels: [builtin/oracle]\nout: runs\noptions: {seeds: 1}", "did you mean 'seed'?"),
        (
            "benchmarks: [b]\nmodels: [builtin/oracle]\nout: runs\noptions: 7",
            "options: expected keys with values, found 7",
        ),
        ("benchmarks: [b]\nmodels: [7]\nout: runs", "expected the name of a model or a function, found 7"),
        ("benchmarks: [7]\nmodels: [builtin/oracle]\nout: runs", "expected a path"),
        ("- benchmarks", "expected keys such as benchmarks and models, found list"),
        ("{", "not YAML"),
        ("benchmarks: &b [b]\nmodels: *b", "holds an alias"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name(tmp_path, content, message):
    file = tmp_path / "experiment.yaml"
    file.write_text(content)
    with pytest.raises(CarinaError) as caught:
        carina.run_experiment(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)

"""The examination as an Inspect task: the same answers as `carina run`, in Inspect's log and in ours."""

import json
import math
import shutil
import subprocess
import sys
import zipfile

import pytest
from tests.models.loopback import KEY, MODEL, Answer, failing
from tests.run.conftest import CASES
from tests.run.served.exam import examined

from carina.errors import CarinaError
from carina.run import RunOptions, read_info, read_rows, run_model

NAMES = [case.id for case in CASES]
TREK = [case for case in CASES if case.protocol == "trek"]
# In a process of its own, as its users have it: it leaves connections open and settles how this one logs.
CODE = """
import json, shutil, sys
from inspect_ai import eval as inspect_eval
from carina.run.inspect_task import trek
bench, url, run, logs, model = sys.argv[1:]
told = []
for number, arguments in enumerate([{"out": run}, {"out": run}, {"log_images": True}]):
    (log,) = inspect_eval(trek(bench=bench, **arguments), model=model, model_base_url=url, max_retries=0,
                          log_dir=logs, display="none")
    shutil.copytree(run, f"{run}-{number}")
    told.append({
        "status": log.status,
        "location": log.location,
        "scores": {score.name: {name.split("/")[-1]: one.value for name, one in score.metrics.items()}
                   for score in log.results.scores},
        "samples": {sample.id: sample.scores["stages"].value for sample in log.samples},
        "roles": [message.role for message in log.samples[0].messages],
    })
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def evaluated(bench, tmp_path_factory):
    """Two evaluations into one run, the first with faults, and one with pictures in its log."""
    folder = tmp_path_factory.mktemp("inspect")
    faults = {("talk", 3): [failing(400, "no")], ("talk-0", 1): [Answer("Yes.")]}
    with pytest.MonkeyPatch.context() as patch, examined(NAMES, faults) as exam:
        patch.setenv("LOOPBACK_API_KEY", KEY)
        line = [bench.directory, exam.service.url, folder / "run", folder / "logs", MODEL]
        ended = subprocess.run(
            [sys.executable, "-c", CODE, *map(str, line)], stdout=subprocess.PIPE, text=True, check=True
        )
    return folder, json.loads(ended.stdout.splitlines()[-1]), exam


def test_every_stage_has_a_score_and_one_that_was_not_reached_is_no_number(evaluated):
    folder, (first, *_), _ = evaluated
    assert first["status"] == "success"
    # Stage 4 is of percept cases alone.
    assert math.isnan(first["scores"].pop("stage 4")["mean"]), "of nothing there is no mean"
    reached = {name: found["n"] for name, found in first["scores"].items()}
    assert reached == {"stage 1": 4, "stage 2": 4, "stage 3": 3, "stage 8": 3}
    assert math.isnan(first["samples"]["talk"]["stage 3"])
    rows = read_rows(folder / "run-0")
    of_case = [
        [row.score for row in rows if row.case == case.id and row.stage == 2 and row.state == "answered"]
        for case in TREK
    ]
    assert first["scores"]["stage 2"]["mean"] == pytest.approx(
        sum(sum(one) / len(one) for one in of_case) / 4
    )


def test_a_task_keeps_its_answers_as_a_run_does(evaluated):
    folder, _, _ = evaluated
    rows = read_rows(folder / "run-0")
    assert [row.case for row in rows] == [case.id for case in TREK for _ in case.steps]
    assert {(row.case, row.number): row.error for row in rows if row.error} == {("talk", 3): "HTTP 400: no"}
    assert [row.raw for row in rows if (row.case, row.number) == ("talk-0", 1)] == ["Yes."]
    info = read_info(folder / "run-0")
    assert (info.model, info.cases) == (MODEL, tuple(case.id for case in TREK))
    assert (info.sampling["temperature"], info.sampling["max_tokens"]) == (0.0, 2048)


def test_the_same_task_again_asks_only_what_is_missing(evaluated):
    folder, (_, second, _), exam = evaluated
    assert {row.state for row in read_rows(folder / "run-1")} == {"answered"}
    assert second["scores"]["stage 3"]["n"] == 4
    # Once for the first two together, once for the third, which keeps nothing.
    assert exam.answered == {(case.id, number): 2 for case in TREK for number in range(len(case.steps))}


def test_pictures_stay_out_of_the_log_unless_they_are_wanted(evaluated):
    _, (_, without, within), _ = evaluated
    assert b"iVBORw0KGgo" not in everything(without["location"])
    assert b"[picture, SHA-256 " in everything(without["location"])
    assert b"iVBORw0KGgo" in everything(within["location"])
    assert without["roles"] == within["roles"] == ["system", *["user", "assistant"] * 5]


def everything(location):
    with zipfile.ZipFile(location) as log:
        return b"".join(log.read(name) for name in log.namelist())


def test_where_it_asked_and_with_what_is_written_down(evaluated):
    folder, _, exam = evaluated
    info = read_info(folder / "run-1")
    assert [call.base_url for call in info.calls] == [exam.service.url] * 2
    assert all(call.ended is not None for call in info.calls)
    assert set(info.calls[0].versions) == {"carina", "inspect-ai"}


def test_carina_run_takes_it_up_with_the_cases_of_other_protocols(bench, evaluated, tmp_path):
    out = shutil.copytree(evaluated[0] / "run-1", tmp_path / "run")
    told = []
    with examined(NAMES) as exam:
        options = RunOptions(base_url=exam.service.url, retries=0)
        result = run_model(bench.directory, MODEL, out, options, tell=told.append)
    assert told == [f"{out}: grows from 4 to 12 cases"]
    assert (result.counts.cases, result.counts.complete) == (12, 12)
    assert {case for case, _ in exam.answered} == {case.id for case in CASES if case.protocol != "trek"}


def test_tasks_have_names_and_say_what_they_cannot_do(bench):
    from inspect_ai._util.registry import registry_info

    from carina.run.inspect_task import ground, percept, trek

    assert [registry_info(one).name for one in (percept, trek, ground)] == [
        "carina/percept",
        "carina/trek",
        "carina/ground",
    ]
    with pytest.raises(CarinaError, match=r"not a way to examine: .*history"):
        percept(bench=str(bench.directory), history="guess")
    with pytest.raises(CarinaError, match="holds no case of ground"):
        ground(bench=str(bench.directory))

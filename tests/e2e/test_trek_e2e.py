"""Phantoms to conversations with the program as a user starts it: build, kill, show, check, audit."""

import hashlib
import html
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from carina.cases import open_benchmark
from carina.cases.faults import faults
from carina.studies import open_studies

PROGRAM = [sys.executable, "-c", "from carina.program import main; main()"]
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def run(*arguments):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=ONE_THREAD,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def digests(directory: Path):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        # What a kill left of a file that was being written has a name of its own.
        if path.is_file() and path.suffix != ".tmp"
    }


def build(studies, out, *more, workers=1):
    return ("build", "trek", studies, "-o", out, "--seed", 3, "--workers", workers, *more)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trek") / "studies"
    result = run("phantom", "-n", 50, "--seed", 5, "--size", 96, "--workers", 2, "-o", directory)
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture(scope="module")
def bench(studies):
    directory = studies.parent / "talks"
    result = run(*build(studies, directory))
    assert result.returncode == 0, result.stderr
    return open_benchmark(directory)


def test_every_study_has_a_conversation_that_walks_the_stages(studies, bench):
    assert {case.study for case in bench} == {study.id for study in open_studies(studies)}
    assert [fault for case in bench for fault in faults(case)] == []
    assert list(bench.check(images=True)) == []
    stages = Counter(step.stage for case in bench for step in case.steps)
    assert set(stages) == set(range(1, 9))
    assert stages[3] > stages[2] > stages[1]
    turns = [len(case.steps) for case in bench]
    assert 15 < sum(turns) / len(turns) < 32
    formats = Counter(step.format for case in bench for step in case.steps)
    assert set(formats) == {"open", "yes_no", "choice", "boxes", "report"}


def test_two_workers_write_the_same_bytes(studies, bench):
    other = studies.parent / "two"
    assert run(*build(studies, other, workers=2)).returncode == 0
    assert digests(other) == digests(bench.directory)


def test_a_build_killed_at_any_time_resumes_and_gives_the_same_bytes(studies, bench):
    broken = studies.parent / "broken"
    process = subprocess.Popen(
        [*PROGRAM, *map(str, build(studies, broken, workers=2))],
        env=ONE_THREAD,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not broken.exists():
            assert process.poll() is None, "finished before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (broken / "bench.json").exists()
    again = run(*build(studies, broken))
    assert again.returncode == 0, again.stderr
    assert digests(broken) == digests(bench.directory)


def test_a_conversation_has_a_page(bench, tmp_path):
    case = max(bench, key=lambda one: len({step.stage for step in one.steps}))
    shown = run("show", bench.directory, case.id, "-o", tmp_path / "pages", "--json")
    assert shown.returncode == 0, shown.stderr
    (page,) = (tmp_path / "pages").rglob("*.html")
    text = html.unescape(page.read_text())
    for step in case.steps:
        assert step.question.splitlines()[0][-40:] in text
    many = run("show", bench.directory, "--limit", 3, "-o", tmp_path / "many")
    assert many.returncode == 0, many.stderr
    assert len(list((tmp_path / "many").rglob("*.html"))) >= 4


def test_the_check_finds_no_problem(bench):
    checked = run("check", bench.directory)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_gate_of_the_audit_fails(bench, tmp_path):
    result = run("audit", bench.directory, "-o", tmp_path / "audit", "--json")
    audit = json.loads(result.stdout)["audit"]
    failed = {gate["name"]: gate["worst"] for gate in audit["gates"] if gate["status"] == "fail"}
    assert failed == {}
    assert result.returncode == 0, result.stderr
    assert (audit["cases"], audit["steps"]) == (50, bench.manifest.counts.steps)
    assert (tmp_path / "audit" / "audit.html").exists()
    assert {"turn-structure", "stage-requirements", "linked-studies", "conversation-statistics"} <= {
        gate["name"] for gate in audit["gates"]
    }


def test_a_second_run_returns_at_once_and_another_seed_is_refused(studies, bench):
    before = digests(bench.directory)
    assert run(*build(studies, bench.directory)).returncode == 0
    refused = run(*build(studies, bench.directory, "--seed", 4))
    assert refused.returncode == 2
    assert "already holds" in refused.stderr
    assert digests(bench.directory) == before

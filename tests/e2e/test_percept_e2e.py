"""Phantoms to a percept benchmark with the program as a user starts it: workers, a kill in the middle, the audit."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from carina.cases import open_benchmark
from carina.cases.faults import faults
from carina.percept import LESIONS

PROGRAM = [sys.executable, "-c", "from carina.program import main; main()"]
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}
PER_CELL = 2


def run(*arguments):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=ONE_THREAD,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def build(studies, out, workers):
    return ("build", "percept", studies, "-o", out, "--per-cell", PER_CELL, "--seed", 3, "--workers", workers)


def digests(directory: Path):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Phantom studies with every lesion of the protocol."""
    directory = tmp_path_factory.mktemp("percept") / "studies"
    result = run("phantom", "-n", 180, "--seed", 5, "--size", 128, "--workers", 2, "-o", directory)
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture(scope="module")
def bench(studies):
    directory = studies.parent / "bench"
    result = run(*build(studies, directory, workers=1))
    assert result.returncode == 0, result.stderr
    return open_benchmark(directory)


def test_every_lesion_and_path_has_its_cases(bench):
    cells = Counter((case.target, case.path) for case in bench)
    assert {target for target, _ in cells} == set(LESIONS)
    assert set(cells.values()) == {PER_CELL}
    assert len(cells) == 21
    assert [fault for case in bench for fault in faults(case)] == []
    assert list(bench.check(images=True)) == []
    hearts, others = 5 + 2 + 1, 9 + 6 + 1
    told = json.loads((bench.directory / "build.json").read_text())["cells"]
    left_out = sum(sum(cell["not_asked"].values()) for cell in told)
    assert 0 < left_out < PER_CELL * 7
    assert bench.manifest.counts.steps == PER_CELL * (hearts + 6 * others) - left_out


def test_two_workers_write_the_same_bytes(studies, bench):
    other = studies.parent / "two"
    assert run(*build(studies, other, workers=2)).returncode == 0
    assert digests(other) == digests(bench.directory)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_resumes_and_gives_the_same_bytes(studies, bench, workers):
    broken = studies.parent / f"broken-{workers}"
    process = subprocess.Popen(
        [*PROGRAM, *map(str, build(studies, broken, workers))],
        env=ONE_THREAD,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    journal = broken / ".journal"
    try:
        deadline = time.monotonic() + 120
        while not (journal.exists() and journal.stat().st_size > 20_000):
            assert process.poll() is None, "finished before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (broken / "bench.json").exists()
    again = run(*build(studies, broken, workers))
    assert again.returncode == 0, again.stderr
    assert digests(broken) == digests(bench.directory)


def test_a_second_run_returns_at_once_and_another_seed_is_refused(studies, bench):
    before = digests(bench.directory)
    again = run(*build(studies, bench.directory, workers=1))
    assert again.returncode == 0
    refused = run(*build(studies, bench.directory, workers=1), "--seed", 4)
    assert refused.returncode == 2
    assert "already holds 42 cases made in another way" in refused.stderr
    assert digests(bench.directory) == before


def test_the_key_points_of_every_case_lead_to_the_keyed_mask(bench):
    for case in bench.where(path="RR"):
        shown = case.region(case.view("v2").panels[0].overlays[0].region).region.to_mask()
        step = case.step("3c")
        view = case.view(step.option(step.key.options[0]).view)
        keyed = case.region(view.panels[0].overlays[0].region).region.to_mask()
        marks = {mark.text: mark for mark in case.view("v3").panels[0].marks}
        pieces, count = ndimage.label(shown ^ keyed, np.ones((3, 3)))
        after, used = shown.copy(), set()
        for name, adds in (("3a", True), ("3b", False)):
            asked = case.step(name)
            for option in asked.options:
                if option.mark is None or option.id not in asked.key.options:
                    continue
                piece = pieces[int(marks[option.mark].y), int(marks[option.mark].x)]
                assert piece > 0
                assert piece not in used
                used.add(piece)
                assert (shown[pieces == piece] != adds).all()
                after[pieces == piece] = adds
        assert len(used) == count
        np.testing.assert_array_equal(after, keyed)


def test_a_constant_answer_is_at_chance(bench):
    places = defaultdict(Counter)
    for case in bench:
        for step in case.steps:
            if not step.multiple:
                places[case.cell, step.id, len(step.options)].update(step.right)
    for (cell, step, options), counts in places.items():
        found = [counts[n] for n in range(1, options + 1)]
        assert max(found) - min(found) <= 1, (cell, step)


def test_the_benchmark_passes_its_audit(bench, tmp_path):
    result = run("audit", bench.directory, "-o", tmp_path / "audit")
    assert result.returncode == 0, result.stdout + result.stderr

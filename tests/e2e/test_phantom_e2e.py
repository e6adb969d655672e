"""The program as a user starts it: killed half-way and run again, and the demo as it comes."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pytest
from scipy.stats import binomtest

from carina.cases import open_benchmark
from carina.runs import open_run
from carina.store.resume import lock_directory
from carina.studies import open_studies

PROGRAM = [sys.executable, "-c", "from carina.program import main; main()"]
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def command(out, *, workers):
    return [
        *PROGRAM,
        "phantom",
        "-n",
        "60",
        "--seed",
        "7",
        "--size",
        "96",
        "--workers",
        str(workers),
        "-o",
        str(out),
    ]


def run(arguments):
    return subprocess.run(arguments, env=ONE_THREAD, capture_output=True, text=True, check=False, timeout=900)


def digests(directory: Path):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def until(condition, process):
    """Wait for a condition while a process runs."""
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "finished before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_killed_command_resumes_and_gives_the_same_bytes(tmp_path):
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    process = subprocess.Popen(
        command(broken, workers=2),
        env=ONE_THREAD,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        # One part is whole, and the images of the next have begun.
        until((broken / "studies" / "part-00000.parquet").exists, process)
        written = len(list(broken.glob("images/*/*.png")))
        until(lambda: len(list(broken.glob("images/*/*.png"))) > written, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (broken / "studies.json").exists()

    again = run(command(broken, workers=2))
    assert again.returncode == 0, again.stderr
    unbroken = run(command(whole, workers=1))
    assert unbroken.returncode == 0, unbroken.stderr
    assert digests(broken) == digests(whole)
    assert not list(broken.rglob("*.tmp"))
    assert list(open_studies(broken).check(images=True)) == []


def test_demo_runs_with_its_defaults(tmp_path):
    result = run([*PROGRAM, "demo", "--out", str(tmp_path)])
    assert result.returncode == 0, result.stderr
    studies = open_studies(tmp_path / "studies")
    assert len(studies) == 200
    assert all(image.width == image.height == 512 for study in studies for image in study.images)
    assert result.stdout.splitlines()[-1] == f"Start page: {tmp_path / 'index.html'}"
    start = (tmp_path / "index.html").read_text()
    pages = tmp_path / "pages"
    for page in (
        "pages/index.html",
        "pages/percept/index.html",
        "pages/trek/index.html",
        "pages/ground/index.html",
    ):
        assert f'href="{page}"' in start
    text = (pages / "index.html").read_text()
    assert "Carina demo" in text
    for study in studies.ids()[:24]:
        assert study in text
    bench = open_benchmark(tmp_path / "percept")
    assert set(bench.manifest.counts.cells.values()) == {2}
    assert len(bench.manifest.counts.cells) == 21
    text = (pages / "percept" / "index.html").read_text()
    for case in bench.ids():
        assert case in text
    assert min(cv2.imread(str(pages / "contact-sheet.png")).shape[:2]) > 500
    assert 'href="report/report.html"' in start
    assert "builtin/reader" in (tmp_path / "report" / "report.html").read_text()
    _check_models(tmp_path / "runs")


def _check_models(runs):
    """The key is always right, a draw is at chance, and who looks is above who does not."""
    rows = {path.name: open_run(path).rows() for path in runs.iterdir()}
    for protocol in ("percept", "trek"):
        assert all(row.correct is not False and row.score == 1.0 for row in rows[f"{protocol}-oracle"])
        for name in ("oracle", "random", "majority", "reader"):
            assert {row.status for row in rows[f"{protocol}-{name}"]} == {"ok"}
    drawn = [row for row in rows["percept-random"] + rows["trek-random"] if row.chance is not None]
    for format_ in ("choice", "yes_no"):
        chances = [row.chance for row in drawn if row.format == format_]
        right = sum(row.correct for row in drawn if row.format == format_)
        spread = sum(chance * (1 - chance) for chance in chances) ** 0.5
        assert abs(right - sum(chances)) < 3 * spread
    found = [row for row in rows["percept-reader"] if row.task == "detection"]
    assert {row.answer for row in rows["percept-reader-blind"] if row.task == "detection"} == {("no",)}
    assert binomtest(sum(row.correct for row in found), len(found), 0.5).pvalue < 0.001
    assert sum(row.correct for row in found) > len(found) / 2
    own, retried = (
        sum(bool(row.correct) for row in rows[f"percept-anchored{suffix}"]) for suffix in ("", "-gold")
    )
    assert retried > own, "who believes what was said before does better after right answers"


def children_of(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:  # ended meanwhile
            continue
        if int(lines["PPid"]) == pid and not lines["State"].startswith("Z"):
            found.append(int(lines["Pid"]))
    return found


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_command(tmp_path, how):
    arguments = ["phantom", "-n", "4000", "--size", "64", "--workers", "2", "-o", tmp_path / "set"]
    with subprocess.Popen([*PROGRAM, *arguments], env=ONE_THREAD) as process:
        while not list(tmp_path.glob("set/images/*/*.png")):
            assert process.poll() is None
            time.sleep(0.05)
        workers = children_of(process.pid)
        assert len(workers) >= 2
        process.send_signal(how)
        process.wait()
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until, "a worker goes on without its parent"
        time.sleep(0.05)


def test_a_second_writer_is_refused(tmp_path):
    with lock_directory(tmp_path):
        result = subprocess.run(
            [*PROGRAM, "phantom", "-n", "1", "--size", "32", "-o", tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert "another process is writing here" in result.stderr

"""The program as a user starts it: killed half-way and run again, and the demo as it comes."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2

from carina.studies import open_studies

PROGRAM = [sys.executable, "-c", "from carina.cli import main; main()"]
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
    return subprocess.run(arguments, env=ONE_THREAD, capture_output=True, text=True, check=False, timeout=300)


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


def test_killed_half_way_and_run_again_the_set_is_the_same(tmp_path):
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


def test_the_demo_as_it_comes(tmp_path):
    result = run([*PROGRAM, "demo", "--out", str(tmp_path)])
    assert result.returncode == 0, result.stderr
    studies = open_studies(tmp_path / "studies")
    assert len(studies) == 24
    assert all(image.width == image.height == 512 for study in studies for image in study.images)
    page = Path(result.stdout.splitlines()[-1].removeprefix("Look at this page:").strip())
    text = page.read_text()
    assert "Carina demo" in text
    for study in studies:
        assert study.id in text
    (sheet,) = (
        Path(line.split(":", 1)[1].strip()) for line in result.stdout.splitlines() if "picture" in line
    )
    assert min(cv2.imread(str(sheet)).shape[:2]) > 500

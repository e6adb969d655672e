"""Served runs that are interrupted: they end at once, keep every answer, and resume."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.served.scripted_model import serving_model
from tests.runs.served.test_served_run import NAMES, STEPS, command, run, timeless, unbroken

from carina.runs.log import read_log

__all__ = ["unbroken"]  # the fixture


def wait_for_answers(scripted, process=None):
    while sum(scripted.answered.values()) < 8 and (process is None or process.poll() is None):
        time.sleep(0.01)


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupted_run_ends_without_a_traceback_and_resumes(
    bench, unbroken, tmp_path, processes, number
):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        scripted.wait = 0.05
        line = command(bench, out, scripted, "--processes", processes)
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            wait_for_answers(scripted, process)
            for _ in range(number):
                os.killpg(process.pid, signal.SIGINT)
            errors = process.stderr.read()
        assert process.returncode in ((130,) if number == 1 else (130, -signal.SIGINT)), errors
        assert "Traceback" not in errors
        scripted.service.wait_until_idle()
        kept = sum(len(steps) for steps in read_log(out).values())
        assert 0 < kept < STEPS
        scripted.wait = 0.0
        before = sum(scripted.answered.values())
        assert run(bench, out, scripted).failures == ()
        assert sum(scripted.answered.values()) - before == STEPS - kept, "only what is missing"
    assert timeless(out) == timeless(unbroken[0])


NOTEBOOK = """
import asyncio, os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from carina.cases import open_benchmark
from tests.runs.served.scripted_model import serving_model
from tests.runs.served.test_served_run import NAMES, run

def interrupt():
    while sum(scripted.answered.values()) < 8:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

async def cell():
    run(open_benchmark(Path(sys.argv[2])), Path(sys.argv[3]), scripted)

with serving_model(NAMES) as scripted:
    scripted.wait = 0.05
    threading.Thread(target=interrupt).start()
    try:
        # As in a notebook, an event loop is running here that the interrupt does not end.
        asyncio.new_event_loop().run_until_complete(cell())
    except KeyboardInterrupt:
        scripted.service.wait_until_idle()
        print(sum(scripted.answered.values()))
"""


def test_a_run_in_a_notebook_ends_when_it_is_interrupted(bench, tmp_path):
    root = Path(__file__).parents[3]
    line = [sys.executable, "-c", NOTEBOOK, root, bench.directory, tmp_path / "run"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert 8 <= int(ended.stdout) < STEPS, ended.stderr

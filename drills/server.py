"""Run a served model against a server that misbehaves in every way, and then against a healthy one.

Each mode is met twice: by questions of a run whose first request was answered, and by the first request alone.

Promises that are tested, for each mode: the command ends in bounded time and memory with a sentence, never with a
traceback; nothing that the server sent commands the terminal; every step is answered, incomplete with a reason, or not
reached, and the sums agree; another address than the given one is never asked; the same command against a healthy
server asks for no answered step again and completes the run; and where the hostile server left no answer, the run then
equals one that never saw it.

Where the first request is met by a hostile answer, the command either refuses in one sentence and writes nothing, or
runs as usual; a healthy server then completes the run, which equals one that never saw the hostile one.

The server and the commands share one process. In each run one conversation is met by the hostile mode from its first
turn on, another from its third turn on, and the others are answered as usual.
"""

import argparse
import os
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Final

# First: it lets the modules of the tests be found.
from common import LIMIT_BYTES, LIMIT_SECONDS, Tally, main

# isort: split

import msgspec
import numpy as np
import openai._base_client
from PIL import Image
from tests.models.loopback import MODEL, Answer, Asked, Service, serving
from tests.runs.conftest import CASES, SIZE
from tests.runs.served.scripted_model import FIRST_SYSTEM, ScriptedModel, turn
from typer.testing import CliRunner

from carina.cases import Provenance, write_benchmark
from carina.cli import app
from carina.runs import open_run
from carina.runs.log import read_log
from carina.runs.records import StepRow
from server_modes import Mode, hostile_modes

NAMES: Final = ("lf", "rr", "talk", "rr-0")
"""Cases of the drill."""
HOSTILE_FROM: Final = {"talk": 0, "rr": 2}
"""Turn from which a case meets the hostile mode."""
CONNECTIONS: Final = 4


class HostileModel(ScriptedModel):
    """Answers some cases in a hostile mode, the others as usual; the first request, where its mode is given."""

    def __init__(self, mode: Mode | None, *, first: Mode | None = None) -> None:
        super().__init__(NAMES)
        self._mode = mode
        self._first = first
        self._times: Counter[tuple[str, int]] = Counter()

    def __call__(self, asked: Asked) -> Answer:
        if asked.system == FIRST_SYSTEM:
            self.first_requests += 1
            if self._first is None:
                return super().__call__(asked)
            return self._first.react(asked, self.first_requests - 1)
        place = (self.case(asked), turn(asked))
        if self._mode is None or place[1] < HOSTILE_FROM.get(place[0], 99):
            return super().__call__(asked)
        before = self._times[place]
        self._times[place] += 1
        return self._mode.react(asked, before)


class Drill:
    """One benchmark, one healthy run, and a run for each mode."""

    def __init__(self, root: Path, tally: Tally) -> None:
        self._root = root
        self._tally = tally
        self._cases = [next(case for case in CASES if case.id == name) for name in NAMES]
        self._steps = {(case.id, number) for case in self._cases for number in range(len(case.steps))}
        bench = root / "bench"
        write_benchmark(bench, self._cases, Provenance(command="made by hand"))
        for number, case in enumerate(self._cases):
            picture = np.full((SIZE, SIZE), 10 + 10 * number, np.uint8)
            Image.fromarray(picture).save(bench / f"{case.id}.png")
        with serving(HostileModel(None)) as healthy:
            self._run("healthy", healthy.url, timeout=60)
        self._expected = timeless(root / "healthy")

    def try_mode(self, mode: Mode, other: Service) -> None:
        """Run against the hostile server, then against a healthy one, and check every promise."""
        name = mode.name
        out = self._root / name.replace("/", "-")
        began = time.monotonic()
        with serving(HostileModel(mode)) as hostile:
            url = hostile.url.replace("http://", f"{mode.scheme}://")
            code, printed, failure = self._run(out.name, url, timeout=mode.timeout)
        seconds = time.monotonic() - began
        self._tally.count("modes")
        self._check(name, failure is None, f"raises {failure!r}")
        self._check(name, code in ((2,) if mode.ends_run else (0, 1)), f"exits with {code}: {printed[:500]}")
        self._check(name, seconds <= LIMIT_SECONDS, f"takes {seconds:.0f} s")
        self._check(name, "Traceback" not in printed, "prints a traceback")
        self._check(name, printed.replace("\n", "").replace("\t", "").isprintable(), f"prints {printed!r}")
        for part in mode.shows:
            self._check(name, part in printed, f"does not say {part!r}: {printed[:500]}")
        self._check(name, not other._server.opened, "connects to another address")
        other._server.opened.clear()
        if not mode.ends_run:
            self._check_account(name, out)
        self._check_resumed(name, out)

    def try_first_request(self, mode: Mode, other: Service) -> None:
        """Meet the first request with the mode, and check that nothing but a sentence comes of it."""
        name = f"first request, {mode.name}"
        out = self._root / f"first-{mode.name.replace('/', '-')}"
        began = time.monotonic()
        with serving(HostileModel(None, first=mode)) as hostile:
            url = hostile.url.replace("http://", f"{mode.scheme}://")
            code, printed, failure = self._run(out.name, url, timeout=mode.timeout)
        seconds = time.monotonic() - began
        self._tally.count("first requests")
        self._check(name, failure is None, f"raises {failure!r}")
        self._check(name, code in (0, 2), f"exits with {code}: {printed[:500]}")
        self._check(name, seconds <= LIMIT_SECONDS, f"takes {seconds:.0f} s")
        self._check(name, "Traceback" not in printed, "prints a traceback")
        self._check(name, printed.replace("\n", "").replace("\t", "").isprintable(), f"prints {printed!r}")
        self._check(name, not other._server.opened, "connects to another address")
        other._server.opened.clear()
        if code == 2:
            self._tally.count("first requests that end a run")
            self._check(name, len(printed.splitlines()) == 1, f"prints several lines: {printed[:500]}")
            self._check(name, url in printed, f"names no address: {printed[:500]}")
            self._check(name, not out.exists(), "writes something")
        healthy = HostileModel(None)
        with serving(healthy) as service:
            code, printed, failure = self._run(out.name, service.url, timeout=60)
        self._check(name, failure is None and code == 0, f"cannot be resumed: {code}, {printed[:500]}")
        self._check(name, timeless(out) == self._expected, "differs from a run that met no hostile server")

    def _check_account(self, name: str, out: Path) -> None:
        """Every step has one row and one state; sums agree."""
        run = open_run(out)
        rows, counts = list(run.rows()), run.counts
        states = Counter(row.state for row in rows)
        self._check(name, {(row.case, row.number) for row in rows} == self._steps, "loses or invents steps")
        self._check(name, len(rows) == len(self._steps), "has several rows for a step")
        sums = {
            "answered": counts.answered,
            "incomplete": counts.incomplete,
            "not_reached": counts.not_reached,
        }
        self._check(name, sums == {state: states[state] for state in sums}, f"counts {sums}, holds {states}")
        self._check(name, sum(sums.values()) == counts.steps, "has sums that do not agree")
        for tokens in ("input_tokens", "output_tokens"):
            known = [getattr(row, tokens) for row in rows if getattr(row, tokens) is not None]
            self._check(name, all(0 <= number < 10**8 for number in known), f"stores {tokens} {known}")
            self._check(name, getattr(counts, tokens) == sum(known), f"sums {tokens} wrongly")
        for case in {row.case for row in rows if row.state == "incomplete"}:
            reasons = [row.error for row in rows if row.case == case and row.state == "incomplete"]
            self._check(name, bool(reasons[0]), f"gives no reason for the case {case}")
        for state in ("answered", "incomplete", "not_reached"):
            self._tally.count(f"steps {state.replace('_', ' ')}", states[state])

    def _check_resumed(self, name: str, out: Path) -> None:
        """A healthy server is asked for what is missing, and for nothing else."""
        log = read_log(out)
        answered = {
            (case, number) for case in log for number, one in log[case].items() if one.row.state == "answered"
        }
        has_hostile_answers = any(number >= HOSTILE_FROM.get(case, 99) for case, number in answered)
        healthy = HostileModel(None)
        with serving(healthy) as service:
            code, printed, failure = self._run(out.name, service.url, timeout=60)
        self._check(
            name, failure is None and code == 0, f"cannot be resumed: {code}, {failure!r}, {printed[:500]}"
        )
        asked = Counter(healthy.answered)
        self._check(name, not answered & asked.keys(), f"asks again for {sorted(answered & asked.keys())}")
        missing = dict.fromkeys(self._steps - answered, 1)
        self._check(name, dict(asked) == missing, "does not ask exactly for what is missing")
        rows = timeless(out)
        self._check(name, {row.state for row in rows} == {"answered"}, "is incomplete after a healthy server")
        if not has_hostile_answers:
            self._check(name, rows == self._expected, "differs from a run that met no hostile server")
            self._tally.count("runs equal to a healthy one")
        self._tally.count("answers kept on resume", len(answered))

    def _run(self, name: str, url: str, *, timeout: int) -> tuple[int, str, BaseException | None]:
        line = [
            "run",
            str(self._root / "bench"),
            "--model",
            MODEL,
            "--base-url",
            url,
            "-o",
            str(self._root / name),
        ]
        more = ["--connections", str(CONNECTIONS), "--retries", "0", "--timeout", str(timeout)]
        done = CliRunner().invoke(app, [*line, *more])
        failure = done.exception if not isinstance(done.exception, SystemExit) else None
        return done.exit_code, done.output, failure

    def _check(self, name: str, is_kept: object, otherwise: str) -> None:
        if not is_kept:
            self._tally.fail(f"{name}: {otherwise}")


def timeless(out: Path) -> list[StepRow]:
    """The rows of a run without what depends on time."""
    return [msgspec.structs.replace(row, seconds=None) for row in open_run(out).rows()]


def drill(root: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Try every mode, or those of the short version."""
    # The delays before a retry are the client's own, and not what is tested.
    vars(openai._base_client).update(INITIAL_RETRY_DELAY=0.01, MAX_RETRY_DELAY=0.01)
    os.environ["LOOPBACK_API_KEY"] = "no-key-is-needed"
    trial = Drill(root, tally)
    with serving(lambda _: "yes") as other:
        for mode in hostile_modes(f"{other.url}/chat/completions"):
            if mode.is_short or not given.short:
                trial.try_mode(mode, other)
                trial.try_first_request(mode, other)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tally.count("megabytes of memory at most", peak // 10**6)
    if peak > LIMIT_BYTES:
        tally.fail(f"takes {peak / 1e9:.1f} GB of memory")


if __name__ == "__main__":
    main("server", __doc__.splitlines()[0], drill)

"""Interrupt commands with Ctrl-C at random moments, once and twice, kill their workers, and run them again.

    python drills/signals.py
    python drills/signals.py --short

Promises: one Ctrl-C ends a command with exit code 130, one sentence and no traceback; a second one ends it at once; no
process outlives its command; a killed worker is one sentence; the same command then resumes and gives the same bytes.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from common import CARINA, INPUT_COMMANDS, LIMIT_SECONDS, Tally, digest_tree, main, make_inputs, run_carina

GAP = 0.3
"""Longest time between the two Ctrl-C of an impatient user, in seconds."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "phantom": ("phantom", "-n", "40", "--seed", "3", "--size", "256", "--workers", "2", "-o"),
    "build percept": ("build", "percept", "studies", "--per-cell", "1", "--workers", "2", "-o"),
    "build trek": ("build", "trek", "studies", "--workers", "2", "-o"),
    "build ground": ("build", "ground", "studies", "--workers", "2", "-o"),
    "run": ("run", "percept", "--model", "builtin/reader", "--processes", "2", "-o"),
    "audit": ("audit", "trek", "--workers", "2", "--no-files", "-o"),
    "export": ("export", "trek", "--to", "chat", "--workers", "2", "-o"),
    "explain": ("explain", "probes", "--model", "builtin/asymmetry", "-o"),
    "report": ("report", "runs/reader", "runs/majority", "-o"),
}
HISTORY = ("run.json", "steps-00.jsonl", "steps-01.jsonl", "report.html")
"""Files that state when calls began and ended, or in which order answers came."""


def drill(root: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Each command in turn: unbroken once for its duration and bytes, then interrupted."""
    make_inputs(root, INPUT_COMMANDS[:2] if given.short else INPUT_COMMANDS)
    draw = random.Random(given.seed)  # noqa: S311 - moments, not secrets
    names = ("phantom", "run") if given.short else tuple(COMMANDS)
    doubles, singles, kills = (2, 1, 1) if given.short else (8, 4, 3)
    for name in names:
        expected = root / "expected" / name.replace(" ", "-")
        whole = run_carina(*COMMANDS[name], expected, cwd=root, seconds=600)
        if whole.code not in (0, 1):  # 1: a gate of an audit fails
            tally.fail(f"{name}: exits with {whole.code}: {whole.errors}")
            continue
        bytes_ = digest_tree(expected, ignore=HISTORY)
        for kind, number in (("twice", doubles), ("once", singles), ("worker", kills)):
            for _ in range(number):
                moment = draw.uniform(0.1, 1.0) * whole.seconds
                out = interrupt(root, name, kind, moment, draw, tally)
                if out is not None:
                    resume(root, name, out, (whole.code, bytes_), tally)
    # A signal may come too late, but not each time.
    sent = sum(tally.counts[what] for what in ("interrupted twice", "interrupted once", "workers killed"))
    check(
        tally.counts["ended as if nothing had happened"] < max(1, sent) / 2,
        "most signals had no effect",
        tally,
    )


def interrupt(
    root: Path, name: str, kind: str, moment: float, draw: random.Random, tally: Tally
) -> Path | None:
    """Start a command, disturb it at a moment, and look at how it ended; returns its output, None after a hang."""
    out = Path(tempfile.mkdtemp(dir=root)) / "out"
    where = f"{name}, {kind} after {moment:.2f} s"
    command = subprocess.Popen(
        [*CARINA, *COMMANDS[name], str(out)],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(moment)
    is_disturbed = disturb(command, kind, draw, tally)
    try:
        output, errors = command.communicate(timeout=LIMIT_SECONDS if is_disturbed else None)
    except subprocess.TimeoutExpired:
        tally.fail(f"{where}: still running after {LIMIT_SECONDS} s")
        os.killpg(command.pid, signal.SIGKILL)
        command.communicate()
        return None
    code = command.returncode
    if code in (0, 1):
        tally.count("ended as if nothing had happened" if is_disturbed else "ended before the signal")
    elif kind == "worker":
        check(code == 2 and "worker process ended" in errors, f"{where}: exit {code}: {errors}", tally)
    else:
        check(code in (130, -signal.SIGINT), f"{where}: exit {code}: {errors}", tally)
    check("Traceback" not in errors + output, f"{where}: {errors}", tally)
    check(has_ended(command.pid), f"{where}: a process goes on without its command", tally)
    return out


def disturb(command: subprocess.Popen[str], kind: str, draw: random.Random, tally: Tally) -> bool:
    """Send Ctrl-C to the whole group, as a terminal does; or kill one worker, as the out-of-memory killer does.

    Returns:
        Whether there was something to disturb.
    """
    if command.poll() is not None:
        return False
    if kind == "worker":
        workers = [
            process for process in members(command.pid) if process != command.pid and is_worker(process)
        ]
        if workers:
            os.kill(draw.choice(workers), signal.SIGKILL)
            tally.count("workers killed")
        return bool(workers)
    os.killpg(command.pid, signal.SIGINT)
    if kind == "twice":
        time.sleep(draw.uniform(0, GAP))
        if members(command.pid):
            os.killpg(command.pid, signal.SIGINT)
    tally.count(f"interrupted {kind}")
    return True


def resume(root: Path, name: str, out: Path, expected: tuple[int, dict[str, str]], tally: Tally) -> None:
    """Run the same command again: the same exit code and bytes as without the interruption."""
    again = run_carina(*COMMANDS[name], out, cwd=root, seconds=600)
    found = digest_tree(out, ignore=HISTORY)
    different = sorted(path for path in {*found, *expected[1]} if found.get(path) != expected[1].get(path))
    check(again.code == expected[0], f"{name}: the rerun exits with {again.code}: {again.errors}", tally)
    check(not different, f"{name}: other bytes after the rerun: {', '.join(different[:5])}", tally)
    tally.count("resumed to the same bytes", int(not different))
    shutil.rmtree(out.parent)


def check(is_kept: bool, promise: str, tally: Tally) -> None:  # noqa: FBT001 - reads as a sentence
    """Note a broken promise."""
    if not is_kept:
        tally.fail(promise)


def members(group: int) -> list[int]:
    """Living processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgid = stat.read_text().rpartition(") ")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(pgid) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def is_worker(process: int) -> bool:
    """Whether a process is a worker of a pool, not the helper that cleans up after processes."""
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def has_ended(group: int) -> bool:
    """Whether all processes of a group end, within the limit for a hang."""
    until = time.monotonic() + LIMIT_SECONDS
    while members(group):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


if __name__ == "__main__":
    main("signals", __doc__.splitlines()[0], drill)

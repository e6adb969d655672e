"""Kill every command that writes a directory, at chosen points, and run it again.

Promises that are tested: the repeated command succeeds; its files equal those of a call that was not broken, byte by
byte (fields that hold times are left out of runs); and no hidden file is left but the list of the files that were
written.

A call runs in a process that is forked from this one, which has imported Carina already. There, an audit hook counts
file-system events below the folder of the call (open for writing, rename, remove, mkdir, fsync) and kills the process
group with SIGKILL right before a chosen one. An unbroken call gives the number of events. Points are spread over all of
them, always with the first and the last few, where a directory is finished. Where a command has too few, further points
are taken from all audit events, such as opening a file for reading. Commands with worker processes are also started as
programs of their own and killed at random times.
"""

import argparse
import hashlib
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

# Before numpy is imported: a forked process must not miss threads that its parent had.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import pyarrow.parquet as pq

from carina.program import main as run_command
from carina.store.loose_files import NAMES
from carina.studies import Region
from common import CARINA, Tally, main

INPUTS: Final = "../../inputs"
"""Where a call finds the inputs, relative to its own folder; the same for all calls, since it is part of some files."""
POINTS: Final = 20
ENDS: Final = tuple(range(12))
"""Events that are always among the points, counted from the last: there, the directory is finished."""
SHORT_POINTS: Final = 3
SHORT_ENDS: Final = (1, 5)
RANDOM_KILLS: Final = 20
SHORT_RANDOM_KILLS: Final = 1
LIMIT: Final = 120
"""Seconds after which a call counts as hanging."""
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS: Final = frozenset(
    {
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "os.link",
        "os.symlink",
        "shutil.rmtree",
    }
)
_TIMES: Final = ("seconds",)
"""Columns of a run that hold times."""

Kind = Literal["write", "any"]


@dataclass(frozen=True)
class Writing:
    """A command that writes a directory."""

    name: str
    arguments: tuple[str, ...]
    is_slow: bool = False
    """Left out of the short version."""


def _writing(name: str, words: str, *, is_slow: bool = False) -> Writing:
    return Writing(name, tuple(words.replace("@", f"{INPUTS}/").split()), is_slow)


COMMANDS: Final = (
    _writing("phantom", "phantom -n 3 --seed 2 --size 64 --workers 1 -o out"),
    _writing("import chexpercept", "import chexpercept @bundle --workers 1 -o out"),
    _writing("import swift-chat", "import swift-chat @chat --images @chat --copy-images --workers 1 -o out"),
    _writing("build percept", "build percept @studies --per-cell 1 --target edema --workers 1 -o out"),
    _writing("build trek", "build trek @studies --workers 1 -o out"),
    _writing("build ground", "build ground @studies --workers 1 -o out"),
    _writing("run", "run @percept --model builtin/reader --limit 3 -o out"),
    _writing(
        "explain", "explain @probes --model builtin/asymmetry --limit 2 --no-controls --workers 1 -o out"
    ),
    _writing(
        "explain with controls",
        "explain @probes --model builtin/asymmetry --limit 2 --workers 1 -o out",
        is_slow=True,
    ),
    _writing(
        "score-maps",
        "score-maps --maps @maps --regions @regions.json --geometry whole --replicates 20 -o out",
    ),
    _writing("report", "report @runs/reader -o out"),
    _writing("report of maps", "report @runs/asymmetry -o out", is_slow=True),
    _writing("show studies", "show @studies --limit 2 -o out"),
    _writing("show cases", "show @percept --limit 2 -o out", is_slow=True),
    _writing("audit", "audit @percept --workers 1 -o out"),
    _writing("export chat", "export @percept --to chat --workers 1 -o out"),
    _writing("export chexpercept", "export @percept --to chexpercept --workers 1 -o out"),
    _writing("export hf", "export @percept --to hf --pictures copy --workers 1 -o out"),
    _writing("convert-pickles", "convert-pickles @pickles -o out"),
    _writing("convert-checkpoint", "convert-checkpoint @checkpoint.pt --kind chexzero -o out", is_slow=True),
)
WITH_WORKERS: Final = (
    _writing("phantom, 2 workers", "phantom -n 40 --seed 2 --size 64 --workers 2 -o out", is_slow=True),
    _writing("run --processes 2", "run @percept --model builtin/reader --processes 2 -o out"),
    _writing("export chat, 2 workers", "export @percept --to chat --workers 2 -o out", is_slow=True),
    _writing(
        "explain, 2 workers", "explain @probes --model builtin/asymmetry --workers 2 -o out", is_slow=True
    ),
)
SETUP: Final = (
    "phantom -n 12 --seed 2 --size 128 --workers 1 -o studies",
    "build percept studies -o percept --per-cell 1 --workers 1",
    "build trek studies -o trek --workers 1",
    "build ground studies -o probes --workers 1",
    "run percept --model builtin/reader -o runs/reader",
    "explain probes --model builtin/asymmetry --limit 6 --workers 1 -o runs/asymmetry",
    "export percept --to chexpercept --workers 1 -o bundle",
    "export trek --to chat --layout swift --pictures copy --workers 1 -o chat",
)


MODULES: Final = (
    "polars",
    "carina.explanations.map_run",
    "carina.exports",
    "carina.ground",
    "carina.maps",
    "carina.pages.report",
    "carina.pages.run_audit",
    "carina.pages.write",
    "carina.percept",
    "carina.phantom",
    "carina.runs.evaluate",
    "carina.runs.shards",
    "carina.sources",
    "carina.trek",
)
"""Imported once, and not used: threads would not survive a fork."""


class Ended(NamedTuple):
    """How a call ended."""

    code: int
    """Exit code; negative for a signal."""
    errors: str
    writes: int
    """Events of writing, where the call was not killed."""
    events: int
    """All audit events."""


# ---- one call -------------------------------------------------------------------------------------------------------


def call(folder: Path, arguments: Sequence[str], *, kill: tuple[Kind, int] | None = None) -> Ended:
    """Run a command in a folder, in a process that is forked from this one, and kill it at a point.

    Args:
        folder: Working directory of the command, which exists; events below it are counted.
        arguments: As on the command line, without `carina`.
        kill: Kind and number, from 1, of the event before which the process group is killed.
    """
    with (folder.parent / f"{folder.name}.errors").open("w+b") as errors:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            _run_forked(folder, arguments, kill, writing, errors.fileno())
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            counts = _read_in_time(process, pipe.read)
        _, status = os.waitpid(process, 0)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    Path(errors.name).unlink()
    writes, events = json.loads(counts) if counts else (0, 0)
    return Ended(os.waitstatus_to_exitcode(status), text, writes, events)


def _read_in_time(process: int, read: Callable[[], bytes]) -> bytes:
    def give_up(*_: object) -> None:
        os.killpg(process, signal.SIGKILL)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    try:
        return read()
    finally:
        signal.alarm(0)


def _run_forked(
    folder: Path, arguments: Sequence[str], kill: tuple[Kind, int] | None, pipe: int, errors: int
) -> None:
    """The forked process: never returns."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for target, source in ((0, null), (1, null), (2, errors)):
            os.dup2(source, target)
        sys.argv = ["carina", *arguments]
        counts = _count_events(folder, kill)
        try:
            run_command()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stderr.flush()
        os.write(pipe, json.dumps([counts["write"], counts["any"]]).encode())
    except BaseException as error:
        os.write(errors, repr(error).encode())
    finally:
        os._exit(code)


def _count_events(folder: Path, kill: tuple[Kind, int] | None) -> dict[Kind, int]:
    """Count file-system events from now on, and kill the process group right before the chosen one."""
    counts: dict[Kind, int] = {"write": 0, "any": 0}
    inside = f"{folder}{os.sep}"

    def count(kind: Kind) -> None:
        counts[kind] += 1
        if kill == (kind, counts[kind]):
            os.killpg(0, signal.SIGKILL)

    def listen(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            is_write = bool(flags & _WRITES)
        elif event in _EVENTS:
            path, is_write = arguments[0], True
        else:
            return
        count("any")
        if not is_write or isinstance(path, int) or path is None:
            return
        if str(folder / os.fsdecode(path)).startswith(inside):
            count("write")

    sync = os.fsync

    def counted_sync(file: int) -> None:
        count("write")
        sync(file)
        count("write")

    os.fsync = counted_sync
    sys.addaudithook(listen)
    return counts


# ---- comparing ------------------------------------------------------------------------------------------------------


def digest_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, without the times that runs hold; computed in a process of its own."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:
            found = {
                str(path.relative_to(folder)): hashlib.sha256(_read_without_times(path)).hexdigest()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            with os.fdopen(writing, "w") as pipe:
                json.dump(found, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        content = pipe.read()
    os.waitpid(process, 0)
    digests: dict[str, str] = json.loads(content)
    return digests


def _read_without_times(path: Path) -> bytes:
    if path.name == "run.json":
        record = json.loads(path.read_bytes())
        for name in ("calls", "table", "id"):
            record.pop(name, None)
        return json.dumps(record, sort_keys=True).encode()
    if path.name == "steps.parquet":
        table = pq.read_table(path)
        return repr(
            table.drop_columns([name for name in _TIMES if name in table.column_names]).to_pylist()
        ).encode()
    if path.name.startswith("steps-") and path.suffix == ".jsonl":
        return b""  # an answer may stand in the log of another worker; the table is made of all logs
    return path.read_bytes()


def compare(tally: Tally, what: str, folder: Path, expected: dict[str, str]) -> None:
    """Note every file that is missing, left over or different."""
    found = digest_files(folder)
    is_log = lambda name: Path(name).name.startswith("steps-")  # noqa: E731 - as many as there were workers
    # The list of the files that Carina wrote stays.
    hidden = [str(p.relative_to(folder)) for p in folder.rglob(".*") if p.name != NAMES]
    for name in hidden:
        tally.fail(f"{what}: {name} is left")
    for name in sorted((found.keys() | expected.keys()) - set(hidden)):
        if found.get(name) != expected.get(name) and not is_log(name):
            state = "missing" if name not in found else "extra" if name not in expected else "different"
            tally.fail(f"{what}: {name} is {state}")


# ---- the drill ------------------------------------------------------------------------------------------------------


def choose_points(ended: Ended, number: int, ends: Sequence[int]) -> list[tuple[Kind, int]]:
    """Points at which to kill: some near the end, others at equal distances; then any audit events."""
    if ended.writes <= number:
        chosen = set(range(1, ended.writes + 1))
    else:
        rest = ended.writes - len(ends)
        spread = number - len(ends)
        chosen = {ended.writes - end for end in ends if end < ended.writes}
        chosen |= {1 + place * rest // spread for place in range(spread)} if spread > 1 else {rest // 2}
    points: list[tuple[Kind, int]] = [("write", place) for place in sorted(chosen)]
    missing = max(0, number - len(points))
    return points + [("any", 1 + (place + 1) * ended.events // (missing + 2)) for place in range(missing)]


def drill_command(base: Path, tally: Tally, command: Writing, number: int, ends: Sequence[int]) -> None:
    """Kill one command at each of its points, run it again, and compare."""
    calls = base / "calls"
    whole = _make_folder(calls, "whole")
    unbroken = call(whole, command.arguments)
    if unbroken.code != 0:
        tally.fail(
            f"{command.name}: an unbroken call exits with {unbroken.code}: {unbroken.errors.strip()[-500:]}"
        )
        return
    expected = digest_files(whole)
    repeated = call(whole, command.arguments)
    if repeated.code != 0:
        tally.fail(
            f"{command.name}: a second call exits with {repeated.code}: {repeated.errors.strip()[-300:]}"
        )
    compare(tally, f"{command.name}, called twice", whole, expected)
    points = choose_points(unbroken, number, ends)
    for kind, place in points:
        what = f"{command.name}, killed at {'file-system' if kind == 'write' else 'audit'} event {place}"
        folder = _make_folder(calls, "killed")
        killed = call(folder, command.arguments, kill=(kind, place))
        if killed.code != -signal.SIGKILL:
            tally.fail(f"{what}: was not killed but exits with {killed.code}: {killed.errors.strip()[-300:]}")
        again = call(folder, command.arguments)
        if again.code != 0:
            tally.fail(f"{what}: the next call exits with {again.code}: {again.errors.strip()[-300:]}")
        compare(tally, what, folder, expected)
        tally.count("kills at file-system events" if kind == "write" else "kills at other audit events")
    print(f"{command.name}: {len(points)} kills, {unbroken.writes} file-system events", flush=True)


def drill_with_workers(
    base: Path, tally: Tally, command: Writing, chance: random.Random, number: int
) -> None:
    """Kill a command that has worker processes at random times, run it again, and compare."""
    calls = base / "calls"
    whole = _make_folder(calls, "whole")
    started = time.monotonic()
    process = _start(whole, command.arguments)
    if process.wait() != 0:
        tally.fail(f"{command.name}: an unbroken call exits with {process.returncode}")
        return
    seconds = time.monotonic() - started
    expected = digest_files(whole)
    for _ in range(number):
        delay = chance.uniform(0.3, 1.0) * seconds
        what = f"{command.name}, killed after {delay:.2f} of {seconds:.2f} s"
        folder = _make_folder(calls, "killed")
        process = _start(folder, command.arguments)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            tally.count("kills at random times, with workers")
        again = _start(folder, command.arguments)
        if again.wait() != 0:
            tally.fail(f"{what}: the next call exits with {again.returncode}")
        compare(tally, what, folder, expected)
    print(f"{command.name}: {number} kills at random times", flush=True)


def _start(folder: Path, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*CARINA, *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _make_folder(calls: Path, name: str) -> Path:
    folder = calls / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make_inputs(inputs: Path, *, with_checkpoint: bool) -> None:
    """Inputs of all commands."""
    inputs.mkdir()
    for words in SETUP:
        ended = call(inputs, words.split())
        if ended.code != 0:
            raise SystemExit(f"carina {words} exits with {ended.code}: {ended.errors}")
    regions: dict[str, Any] = {}
    for folder in ("maps", "pickles"):
        (inputs / folder).mkdir()
    for number in range(3):
        name = f"patient{number}_study1_view{number}_frontal"
        values = np.random.default_rng(number).random((32, 32), np.float32)
        regions[name] = {"Edema": Region.from_box(4, 4, 8, 8, height=32, width=32).to_coco()}
        np.save(inputs / "maps" / f"{name}_Edema_map.npy", values)
        (inputs / "pickles" / f"{name}_Edema_map.pkl").write_bytes(pickle.dumps({"map": values}))
    (inputs / "regions.json").write_text(json.dumps(regions))
    if with_checkpoint:
        save = "import sys, torch; torch.save({'visual.proj': torch.ones(2, 2)}, sys.argv[1])"
        subprocess.run([sys.executable, "-c", save, inputs / "checkpoint.pt"], check=True)


def drill(folder: Path, tally: Tally, options: argparse.Namespace) -> None:
    """Kill every command."""
    for name in MODULES:
        import_module(name)
    is_short = options.short
    make_inputs(folder / "inputs", with_checkpoint=not is_short)
    number, ends = (SHORT_POINTS, SHORT_ENDS) if is_short else (POINTS, ENDS)
    for command in COMMANDS:
        if options.only in command.name and not (is_short and command.is_slow):
            drill_command(folder, tally, command, number, ends)
            tally.count("commands")
    chance = random.Random(options.seed)  # noqa: S311 - not a secret
    for command in WITH_WORKERS:
        if options.only in command.name and not (is_short and command.is_slow):
            kills = SHORT_RANDOM_KILLS if is_short else RANDOM_KILLS
            drill_with_workers(folder, tally, command, chance, kills)
            tally.count("commands")


if __name__ == "__main__":
    main("kill", "Kill every command that writes a directory, at chosen points, and run it again.", drill)

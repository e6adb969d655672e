"""What every drill needs: small inputs made by Carina itself, commands in processes of their own, a table of counts.

A drill does on purpose what a user does by accident: it kills, interrupts, damages or deceives Carina, and counts what
came of it. Each drill is one program with the options `--short` (the version in `make test`, about a minute) and
`--seed`; it prints its counts and exits with 1 if anything broke a promise of `docs/explanation/robustness.md`.
"""

import argparse
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

# Drills use the loopback server of the tests.
sys.path.append(str(Path(__file__).resolve().parents[1]))

LIMIT_SECONDS = 20
"""Seconds after which a command on a small input counts as a hang."""
LIMIT_BYTES = 2_000_000_000
"""Memory that a command on a small input may take."""
CARINA = (sys.executable, "-c", "from carina.program import main; main()")
"""The command line, as the program `carina` starts it; workers and signals behave as they do there."""


@dataclass(frozen=True)
class Outcome:
    """What came of one command."""

    arguments: tuple[str, ...]
    code: int | None
    """Exit code; negative for a signal, None where the time limit ended it."""
    output: str
    errors: str
    seconds: float

    @property
    def has_traceback(self) -> bool:
        """Whether the user was shown a traceback instead of a sentence."""
        return "Traceback (most recent call last)" in self.errors + self.output


@dataclass
class Tally:
    """Counts of a drill, and every broken promise in words."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """Add to one of the counts that the table shows."""
        self.counts[what] += number

    def fail(self, what: str) -> None:
        """Note a broken promise: where, what was expected, what came."""
        self.failures.append(what)
        print(f"FAILED {what}", file=sys.stderr, flush=True)


def run_carina(
    *arguments: str | Path,
    cwd: Path | None = None,
    seconds: float = LIMIT_SECONDS,
    memory: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Outcome:
    """Run one command of Carina to its end.

    Args:
        arguments: As on the command line, without `carina`.
        cwd: Working directory; None for that of the drill.
        seconds: Time after which the command, and all processes that it started, are killed.
        memory: Bytes of address space that each process may take; None for no limit.
        env: Environment variables in addition to those of the drill.
    """
    words = tuple(map(str, arguments))

    def limit() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    started = time.monotonic()
    process = subprocess.Popen(
        [*CARINA, *words],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=limit,
        text=True,
        errors="backslashreplace",
    )
    try:
        output, errors = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, errors = process.communicate()
        code = None
    return Outcome(words, code, output, errors, time.monotonic() - started)


def digest_tree(directory: Path, *, ignore: Sequence[str] = ()) -> dict[str, str]:
    """SHA-256 of every file below a directory, by relative path; `ignore` are names of files to leave out.

    Of the table of a run, how long the model took for an answer does not count.
    """
    return {
        str(path.relative_to(directory)): hashlib.sha256(_lasting_bytes(path)).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ignore
    }


def _lasting_bytes(path: Path) -> bytes:
    if path.name != "steps.parquet":
        return path.read_bytes()
    table = pq.read_table(path)
    return repr(
        table.drop_columns([name for name in ("seconds",) if name in table.column_names]).to_pylist()
    ).encode()


INPUT_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("phantom", "-n", "24", "--seed", "2", "--size", "256", "-o", "studies"),
    ("build", "percept", "studies", "-o", "percept", "--per-cell", "1"),
    ("build", "trek", "studies", "-o", "trek"),
    ("build", "ground", "studies", "-o", "probes"),
    ("run", "percept", "--model", "builtin/reader", "-o", "runs/reader"),
    ("run", "percept", "--model", "builtin/majority", "-o", "runs/majority"),
    ("explain", "probes", "--model", "builtin/asymmetry", "-o", "maps/asymmetry"),
)
"""Commands that make small inputs for every other command, in this order."""


def make_inputs(root: Path, commands: Sequence[tuple[str, ...]] = INPUT_COMMANDS) -> Path:
    """Small inputs for every command below `root`: studies, three benchmarks, a run of each kind.

    Returns:
        `root`, with `studies`, `percept`, `trek`, `probes`, `runs/reader`, `runs/majority` and `maps/asymmetry`.
    """
    for arguments in commands:
        outcome = run_carina(*arguments, cwd=root, seconds=600)
        if outcome.code != 0:
            raise SystemExit(f"carina {' '.join(arguments)} exits with {outcome.code}: {outcome.errors}")
    return root


def main(
    name: str,
    description: str,
    drill: Callable[[Path, Tally, argparse.Namespace], None],
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _parser: None,
) -> None:
    """Run a drill as a program: parse its options, give it an empty folder, print what it counted, exit 1 on failures.

    Args:
        name: One word, the first of the summary line.
        description: First line of `--help`.
        drill: Called with an empty folder, the tally to fill, and the options `short` and `seed`.
        add_options: Adds further options of this drill.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--short", action="store_true", help="the version in `make test`: about a minute")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is drawn at random")
    parser.add_argument("--keep", type=Path, help="work in this new folder, and keep it")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only the cases with this text in their names"
    )
    add_options(parser)
    given = parser.parse_args()
    # Started in the background, the drill would ignore Ctrl-C, and so would every command that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tally = Tally()
    started = time.monotonic()
    for folder in _work_folder(given.keep):
        drill(folder, tally, given)
    width = max(map(len, tally.counts), default=0)
    for what, number in tally.counts.items():
        print(f"{what:<{width}}  {number:>8,}")
    print(f"{name}: {len(tally.failures)} broken promises, {time.monotonic() - started:.0f} s")
    raise SystemExit(1 if tally.failures else 0)


def _work_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="carina-drill-") as folder:
        yield Path(folder).resolve()

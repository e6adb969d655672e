"""Are the bytes that Carina writes a function of its inputs and options alone?

Every command that writes is run on the same small inputs in several variants: other numbers of workers, another working
directory, relative and absolute paths, another order in which the operating system lists files, other hash seeds, time
zones, locales, file modes, numbers of cores and of threads, and directories with unusual names. All variants must write
the same files with the same bytes. What tells when or how fast something ran, and paths that are repeated as the caller
wrote them, are left out by name (`TIMES`, `TIMED_LINES`, `GIVEN_PATHS`).

    python drills/determinism.py
    python drills/determinism.py --short
"""

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from carina.studies import Region
from common import Tally, main

TIMES = frozenset({"started", "ended", "seconds", "table"})
"""Fields and columns of a run that tell when or how fast it was made; `table` is a checksum of a table with seconds."""
TIMED = ("run.json", "steps-*.jsonl", "steps.parquet")
"""Files of a run with such fields."""
TIMED_LINES = ("report.html", "cost.csv", "tables.parquet")
"""Files of a report that tell, in lines or rows of their own, how many seconds answers took."""
SECONDS = b"seconds"
"""The word in these lines and rows."""
GIVEN_PATHS = {
    "scores/scores.json": (b'  "maps":', b'  "regions":'),
    "demo/index.html": (b"<dt><code>carina ",),
}
"""Beginnings of lines that repeat paths as the caller wrote them, by the end of the file's path."""

SITE = """
import os, sys
if os.environ.get("DRILL_REVERSED"):
    listdir, scandir = os.listdir, os.scandir
    class Reversed:
        def __init__(self, entries):
            self._entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))
        def __iter__(self):
            return self._entries
        def __next__(self):
            return next(self._entries)
        def __enter__(self):
            return self
        def __exit__(self, *_):
            pass
        def close(self):
            pass
    os.listdir = lambda *given: sorted(listdir(*given), reverse=True)
    os.scandir = lambda *given: Reversed(list(scandir(*given)))
if os.environ.get("DRILL_CORES"):
    os.cpu_count = lambda: int(os.environ["DRILL_CORES"])
"""
"""Imported by Python when it starts, in workers too: another order of files, another number of cores."""


@dataclass(frozen=True)
class Variant:
    """One way to run all commands."""

    name: str
    workers: int | None = 1
    """None for the default, one per core."""
    folder: str = "work"
    """Name of the directory that holds all outputs."""
    paths: str = "relative"
    """"relative" to the directory of outputs, "absolute", or relative to "elsewhere"."""
    umask: int = 0o022
    engine: str = "local"
    env: dict[str, str] = field(default_factory=dict)


BASE = Variant("one worker", env={"PYTHONHASHSEED": "0"})
SHORT = (
    Variant(
        "two workers, absolute paths, other hash seed, time zone, umask",
        workers=2,
        paths="absolute",
        umask=0o077,
        env={"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"},
    ),
    Variant(
        "other directory, unusual name, C locale, files reversed, three threads",
        folder="a [b] *? ü 'c' #d",
        paths="elsewhere",
        env={"PYTHONHASHSEED": "7", "LC_ALL": "C", "DRILL_REVERSED": "1", "OMP_NUM_THREADS": "3"},
    ),
)
FULL = (
    *SHORT,
    Variant("two workers", workers=2),
    Variant("three workers", workers=3),
    Variant("default workers, five cores", workers=None, env={"DRILL_CORES": "5"}),
    Variant("absolute paths", paths="absolute"),
    Variant("another working directory", paths="elsewhere"),
    Variant("other hash seed", env={"PYTHONHASHSEED": "12345"}),
    Variant("Turkish locale and another time zone", env={"LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns"}),
    Variant("C locale without UTF-8", env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
    Variant("private files", umask=0o077),
    Variant("four threads", env={"OMP_NUM_THREADS": "4", "POLARS_MAX_THREADS": "3"}),
    Variant("a directory with an unusual name", folder="m[1] x*y? {z} ü %20 'q'"),
    Variant("files listed in another order", env={"DRILL_REVERSED": "1"}),
    Variant("Ray", workers=2, engine="ray"),
)


def drill(folder: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Run all variants, and compare each with the first."""
    make_files(folder / "files", given.seed)
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    expected = run_variant(folder, BASE, tally, given)
    tally.count("commands", len(list(commands(given))))
    tally.count("files of the first variant", len(expected))
    for variant in SHORT if given.short else FULL:
        if not given.short:
            print(variant.name, flush=True)
        written = run_variant(folder, variant, tally, given)
        tally.count("variants")
        tally.count("files compared", len(written.keys() & expected.keys()))
        for where, files in (
            ("missing there", expected.keys() - written.keys()),
            ("only there", written.keys() - expected.keys()),
        ):
            for output, number in sorted(Counter(Path(file).parts[0] for file in files).items()):
                tally.fail(f"{variant.name}: {output}: {number} files are {where}")
        for file in sorted(written.keys() & expected.keys()):
            if written[file] != expected[file]:
                tally.fail(f"{variant.name}: {file}: other bytes than with {BASE.name}")


def make_files(folder: Path, seed: int) -> None:
    """Localisation maps, pickled ones and regions of another tool."""
    chance = np.random.default_rng(seed)
    (folder / "maps").mkdir(parents=True)
    (folder / "pickles").mkdir()
    regions = {}
    for number in range(6):
        name = f"patient{number // 2}_study1_view{number}_frontal"
        values = chance.random((8, 8), np.float32)
        np.save(folder / "maps" / f"{name}_Edema_map.npy", values)
        (folder / "pickles" / f"{name}_Edema_map.pkl").write_bytes(pickle.dumps({"map": values}))
        regions[name] = {"Edema": Region.from_box(4, 4, 8, 8, height=32, width=32).to_coco()}
    (folder / "gt.json").write_text(json.dumps(regions))


def commands(given: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Every writing command with its options; `<name>` is a path of an earlier output, `[name]` of a made file.

    `@workers`, `@processes` and `@engine` stand for the options of the variant.
    """
    small = ("-n", "6", "--size", "64") if given.short else ("-n", "24", "--size", "128")
    seed = ("--seed", str(given.seed))
    yield ("phantom", *small, "--seed", str(given.seed + 2), "-o", "<studies>", "@workers")
    yield ("build", "percept", "<studies>", "-o", "<percept>", "--per-cell", "1", *seed, "@workers")
    yield ("build", "trek", "<studies>", "-o", "<trek>", *seed, "@workers", "@engine")
    yield ("build", "ground", "<studies>", "-o", "<probes>", *seed, "@workers")
    yield ("run", "<percept>", "--model", "builtin/reader", "-o", "<runs/reader>", "@processes", "@engine")
    yield ("run", "<percept>", "--model", "builtin/random", "-o", "<runs/random>", "@processes")
    yield ("run", "<trek>", "--model", "builtin/majority", "-o", "<runs/majority>", "@processes")
    yield ("explain", "<probes>", "--model", "builtin/asymmetry", "-o", "<maps/asymmetry>", "@workers")
    yield ("show", "<studies>", "-o", "<pages/studies>", "--limit", "2")
    yield ("show", "<percept>", "-o", "<pages/percept>", "--limit", "2")
    yield ("show", "<trek>", "-o", "<pages/trek>", "--limit", "2")
    yield ("audit", "<trek>", "-o", "<audit>", "@workers")
    yield ("report", "<runs>", "-o", "<report>")
    yield ("report", "<maps>", "-o", "<map-report>")
    yield ("export", "<trek>", "--to", "chat", "-o", "<chat>", "@workers")
    yield ("export", "<percept>", "--to", "chexpercept", "-o", "<bundle>", "@workers")
    yield ("export", "<percept>", "--to", "hf", "-o", "<hf>", "@workers")
    yield ("import", "chexpercept", "<bundle>", "-o", "<imported>", "@workers")
    yield (
        "score-maps", "--maps", "[maps]", "--regions", "[gt.json]", "--geometry", "whole", "--replicates", "50",
        "-o", "<scores>",
    )  # fmt: skip
    yield ("convert-pickles", "[pickles]", "-o", "<converted>")
    if not given.short:
        yield (
            "demo", "--studies", "3", "--size", "64", "--per-cell", "1", *seed, "--out", "<demo>", "@workers",
        )  # fmt: skip


def run_variant(folder: Path, variant: Variant, tally: Tally, given: argparse.Namespace) -> dict[str, str]:
    """Run all commands in a process of the variant; returns the digest of every file by its path."""
    root = folder / f"variant-{len(list(folder.glob('variant-*')))}" / variant.folder
    root.mkdir(parents=True)
    elsewhere = folder / "elsewhere" / "deeper"
    elsewhere.mkdir(parents=True, exist_ok=True)
    cwd = elsewhere if variant.paths == "elsewhere" else root
    lines = [
        [word for part in line for word in _word(part, root, cwd, folder / "files", variant)]
        for line in commands(given)
    ]
    program = "import json, os, sys; os.umask(int(sys.argv[1])); exec(sys.stdin.read())"
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        **variant.env,
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, str(variant.umask)],
        input=f"lines = json.loads({json.dumps(json.dumps(lines))})\n{CHAIN}",
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
    )
    if done.returncode != 0 or done.stdout:
        tally.fail(f"{variant.name}: {done.stdout}{done.stderr[-2000:]}")
    tally.count("commands run", len(lines))
    return {str(path.relative_to(root)): digest(path) for path in sorted(root.rglob("*")) if path.is_file()}


CHAIN = """
from typer.testing import CliRunner
from carina.cli import app
for line in lines:
    result = CliRunner().invoke(app, line)
    allowed = (0, 1) if line[0] in ("audit", "convert-pickles") else (0,)
    if result.exit_code not in allowed:
        print(f"carina {' '.join(line)}: exit {result.exit_code}: {result.output[-500:]} {result.exception!r}")
"""
"""Runs the commands one after the other in one process, which imports Carina once; prints those that fail."""


def _word(part: str, root: Path, cwd: Path, files: Path, variant: Variant) -> Iterator[str]:
    """One word of a command line as the variant writes it."""
    if part[0] in "<[":
        path = (root if part[0] == "<" else files) / part[1:-1]
        yield str(path) if variant.paths == "absolute" else os.path.relpath(path, cwd)
    elif part in ("@workers", "@processes"):
        if variant.workers is not None:
            yield from (f"--{part[1:]}", str(variant.workers))
    elif part == "@engine":
        yield from ("--engine", variant.engine)
    else:
        yield part


def digest(path: Path) -> str:
    """Digest of the bytes of a file; of a run without the fields of `TIMES`, of a report without seconds."""
    content = path.read_bytes()
    if any(path.match(pattern) for pattern in TIMED):
        if path.suffix == ".parquet":
            table = pl.read_parquet(content)
            kept: object = table.drop([name for name in table.columns if name in TIMES]).to_dicts()
        else:
            lines = content.splitlines() if path.suffix == ".jsonl" else [content]
            kept = [_without_times(json.loads(line)) for line in lines]
        content = repr(kept).encode()
    elif path.name in TIMED_LINES:
        if path.suffix == ".parquet":
            content = "\n".join(map(repr, pl.read_parquet(content).rows())).encode()
        content = b"\n".join(line for line in content.split(b"\n") if SECONDS not in line)
    for end, starts in GIVEN_PATHS.items():
        if path.as_posix().endswith(end):
            content = b"\n".join(line for line in content.split(b"\n") if not line.startswith(starts))
    return hashlib.sha256(content).hexdigest()


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in TIMES}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main("determinism", __doc__.splitlines()[0], drill)

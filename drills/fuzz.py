"""Damage every kind of file that Carina reads, in thousands of ways, and see what the commands make of it.

Promised: a damaged input is refused with a sentence, or it is accepted and `carina check` accepts it too. No command
ends in a traceback, takes more than 20 seconds or 2 GB, opens or writes a file outside of the given paths, or uses a
study set or a benchmark that `carina check` refuses.

Each command runs in a process that is forked from one that has imported everything. So an input takes milliseconds
rather than the seconds that an import takes, and a crash ends nothing but the one command.
"""

import argparse
import ctypes
import gc
import importlib
import json
import os
import pickle
import pkgutil
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image
from typer.main import get_command

import carina
import mutations
from carina.audits import list_gates
from carina.cli import app
from carina.runs.prices import TABLE
from carina.studies import Region, write_png
from common import INPUT_COMMANDS, LIMIT_BYTES, LIMIT_SECONDS, Tally, main

INPUTS: Final = 5_000
SHORT: Final = 120
WORK: Final = "work"
"""Name of the folder in which a command runs; everything outside of it is outside."""
REFUSED: Final = 2
CRASHED: Final = 70
_NOT_IMPORTED: Final = ("carina.runs.inspect", "carina.models.served", "carina.maps.unpickle")
"""Modules with costly extras that no command here uses, and the program of a process of its own."""
_NEED_TORCH: Final = (
    "carina.explanations.methods",
    "carina.models.chat",
    "carina.models.clip",
    "carina.models.sam",
    "carina.runs.score.learned",
)
_TESTS: Final = Path(__file__).parent.parent / "tests"

_READABLE: Final = tuple(
    os.path.realpath(path)
    for path in (sys.prefix, sys.base_prefix, Path(__file__).parent.parent, *filter(os.path.isdir, sys.path), "/dev",
                 "/proc", "/sys", "/usr", "/lib", "/lib64", "/bin", "/etc")
)  # fmt: skip
_SECRET: Final = ("/etc/passwd", "/etc/shadow")
_WRITES: Final = frozenset(
    ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
     "shutil.move", "shutil.rmtree", "shutil.copyfile", "shutil.copytree", "os.utime")
)  # fmt: skip
_LIBC: Final = ctypes.CDLL(None)


# ---- one command ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What came of one command."""

    code: int | None
    """Exit code; negative for a signal, None where the time limit ended it."""
    text: str
    """What it printed, both streams."""
    seconds: float
    bytes: int
    """Largest memory."""
    outside: tuple[str, ...]
    """Accesses outside of the folder."""


def run_forked(arguments: Sequence[str], folder: Path, *, seconds: float = LIMIT_SECONDS) -> Outcome:
    """Run one command of Carina in a copy of this process, with `folder` as its working directory."""
    said, seen = folder / ".said", folder / ".seen"
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_command(arguments, folder, said, seen)
    code, used = _wait(pid, started, seconds)
    text = said.read_text(errors="backslashreplace")
    outside = tuple(dict.fromkeys(seen.read_text(errors="backslashreplace").splitlines()))
    said.unlink()
    seen.unlink()
    return Outcome(code, text, time.monotonic() - started, used * 1024, outside)


def _wait(pid: int, started: float, seconds: float) -> tuple[int | None, int]:
    """Exit code and largest memory of a process; None for one that hangs.

    On a busy machine a process gets little of a processor: one that still computes has more time, up to `seconds` of
    its own, and one that waits has not.
    """
    pause = 0.002
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss
        waited, worked = time.monotonic() - started, _processor_time(pid)
        if worked > seconds or (waited > seconds and worked < waited / 20):
            os.killpg(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            return None, usage.ru_maxrss
        time.sleep(pause)
        pause = min(pause * 1.3, 0.05)


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _be_command(arguments: Sequence[str], folder: Path, said: Path, seen: Path) -> None:
    """The forked process: never returns."""
    code = CRASHED
    try:
        os.setsid()
        _LIBC.prctl(1, signal.SIGKILL)  # it ends with its parent
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(
            resource.RLIMIT_AS, (4 * LIMIT_BYTES, 4 * LIMIT_BYTES)
        )  # the machine survives, too
        os.chdir(folder)
        output = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        report = os.open(seen, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        os.environ["TMPDIR"] = str(folder / "tmp")
        tempfile.tempdir = None
        sys.addaudithook(_make_hook(str(folder), report))
        try:
            _command()(list(arguments), prog_name="carina")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


@cache
def _command() -> Any:
    """The command line, made once: a call of `app` makes it anew, which takes longer than most damaged inputs."""
    return get_command(app)


def _make_hook(folder: str, report: int) -> Callable[[str, tuple[Any, ...]], None]:
    """Note every file that is opened or changed outside of the folder; the interpreter's own files may be read."""

    def note(event: str, path: object, *, writes: bool) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        real = os.path.realpath(os.fsdecode(path))
        is_inside = real == folder or real.startswith(folder + os.sep)
        is_readable = real.startswith(_READABLE) and real not in _SECRET
        if not is_inside and (writes or not is_readable) and real != os.devnull:
            os.write(report, f"{event} {real}\n".encode(errors="backslashreplace"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event == "open":
                path, mode, flags = arguments
                changes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else 0
                note("opens", path, writes=bool(changes) or any(letter in (mode or "") for letter in "wax+"))
            elif event in _WRITES:
                for path in arguments[:2]:
                    note(event, path, writes=True)
            elif event in ("os.listdir", "os.scandir"):
                note(event, arguments[0] or ".", writes=False)
            elif event == "socket.connect":
                os.write(report, f"connects to {arguments[1]}\n".encode())
        except ValueError:  # a NUL in a path: the operating system will refuse it
            pass

    return hook


# ---- what is damaged -----------------------------------------------------------------------------------------------

Damage = Callable[[Path, random.Random], str]


@dataclass(frozen=True)
class Target:
    """One kind of file, the ways to damage it, and the commands that read it."""

    name: str
    files: str
    """Pattern of the files below the folder of inputs."""
    damages: tuple[Damage, ...]
    commands: tuple[str, ...]
    manifest: str = ""
    """Manifest whose checksums are repaired after the damage, mostly."""
    checks: str = ""
    """Set that `carina check` judges: whoever accepts what it refuses breaks a promise."""
    weight: int = 1
    folders: tuple[str, ...] = ()
    """Folders below that of the inputs that the commands need; all of them where it is empty."""


_JSON: Final = (mutations.damage_json,) * 4 + (mutations.damage_bytes, mutations.replace_by_oddity)
_PARQUET: Final = (
    (mutations.damage_table,) * 6
    + (mutations.damage_columns, mutations.damage_bytes) * 2
    + (mutations.replace_by_oddity,)
)
_SET: Final = ("check {0}", "show {0} -o out --limit 3")
_BENCH: Final = (
    *_SET,
    "audit {0} -o out --workers 1 --render 3",
    "run {0} --model builtin/majority -o out",
    "run {0} --model builtin/oracle -o out",
    "export {0} --to chat -o out --workers 1",
    "export {0} --to hf -o out --workers 1",
)
_STUDIES: Final = (
    *_SET,
    "build percept studies -o out --per-cell 1 --workers 1 --target edema --target nodule",
    "build trek studies -o out --workers 1",
    "build ground studies -o out --workers 1",
)
_RUNS: Final = (
    "report runs/reader runs/majority -o out --cases 3",
    "report runs/reader runs/majority -o out --cases 3",
    "run percept --model builtin/reader -o runs/reader",
)
_MAPS: Final = (
    "report maps/asymmetry -o out --cases 3",
    "explain probes --model builtin/asymmetry -o maps/asymmetry --workers 1 --no-controls --limit 4",
)
_SCORES: Final = (
    "score-maps --maps files --regions regions.json --geometry whole --replicates 20 --patients patients.csv -o out",
    "score-maps --maps files --regions coco.json --geometry whole --replicates 20 -o out",
    "compare-profiles --maps files --regions regions.json --geometry whole",
)


def _fill(commands: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(command.format(name) for command in commands)


_PROBES: Final = (
    *_fill(_BENCH, "probes"),
    "explain probes --model control/centre -o out --workers 1",
)
_PERCEPT: Final = (*_fill(_BENCH, "percept"), "export percept --to chexpercept -o out --workers 1",
                   "run percept --model builtin/random -o out --history gold")  # fmt: skip

TARGETS: Final = (
    Target("studies.json", "studies/studies.json", _JSON, _fill(_STUDIES, "studies"), checks="studies", weight=3),
    Target("study parts", "studies/studies/*.parquet", _PARQUET, _fill(_STUDIES, "studies"), "studies/studies.json",
           "studies", 8),
    Target("images", "studies/images/**/*.png", (mutations.damage_image,),
           (*_fill(_STUDIES, "studies"), *_PERCEPT, *_PROBES[:4], _PROBES[-1]), weight=5),
    Target("bench.json", "*/bench.json", _JSON,
           (*_fill(_SET, "percept"), *_PERCEPT, *_fill(_BENCH, "trek"), *_PROBES), weight=3),
    Target("percept cases", "percept/cases/*.parquet", _PARQUET, _PERCEPT, "percept/bench.json", "percept", 8),
    Target("trek cases", "trek/cases/*.parquet", _PARQUET, _fill(_BENCH, "trek"), "trek/bench.json", "trek", 8),
    Target("probes", "probes/cases/*.parquet", _PARQUET, _PROBES, "probes/bench.json", "probes", 6),
    Target("build.json", "*/build.json", _JSON, ("audit percept -o out --workers 1 --no-files",
           "audit trek -o out --workers 1 --no-files", "build percept studies -o percept --per-cell 1 --workers 1",
           "build ground studies -o probes --workers 1")),
    Target("skipped.csv", "*/skipped.csv", (mutations.damage_csv, mutations.replace_by_oddity),
           ("audit trek -o out --workers 1 --no-files", "build ground studies -o probes --workers 1",
            "report maps/asymmetry -o out --cases 3")),
    Target("run.json", "runs/reader/run.json", _JSON, _RUNS, weight=3),
    Target("steps.parquet", "runs/reader/steps.parquet", _PARQUET, _RUNS[:1], weight=4),
    Target("log of a run", "runs/reader/steps-00.jsonl", (mutations.damage_lines,), _RUNS, weight=3),
    Target("maps.json", "maps/asymmetry/maps.json", _JSON, _MAPS, weight=2),
    Target("map parts", "maps/asymmetry/maps/*.parquet", _PARQUET, _MAPS, "maps/asymmetry/maps.json", weight=3),
    Target("scores of maps", "maps/asymmetry/*.parquet", _PARQUET, _MAPS[:1], weight=3),
    Target("scoring.json", "maps/asymmetry/scoring.json", _JSON, _MAPS, weight=2),
    Target("map files", "files/*", (mutations.damage_array, mutations.damage_image), _SCORES, weight=4),
    Target("regions", "regions.json", _JSON, (_SCORES[0], _SCORES[2]), weight=3),
    Target("COCO regions", "coco.json", _JSON, _SCORES[1:2], weight=3),
    Target("patients", "patients.csv", (mutations.damage_csv,), _SCORES[:1]),
    Target("thresholds", "thresholds.json", _JSON, (f"{_SCORES[0]} --split test --profile chexlocalize "
           "--thresholds thresholds.json",), weight=2),
    Target("pickles", "pickles/*.pkl", (mutations.damage_bytes,), ("convert-pickles pickles -o out",), weight=2),
    Target("limits", "limits.yaml", (mutations.damage_yaml,),
           ("audit percept -o out --workers 1 --no-files --limits limits.yaml",), weight=3),
    Target("prices", "prices.yaml", (mutations.damage_yaml,),
           ("report runs/reader -o out --cases 1 --prices prices.yaml",)),
    Target("CheXpercept bundle", "bundle/chexpercept.json", _JSON,
           ("import chexpercept bundle -o out --workers 1",), checks="out", weight=4),
    Target("pictures of a bundle", "bundle/**/*.png", (mutations.damage_image,),
           ("import chexpercept bundle -o out --workers 1",), weight=2),
    Target("conversations", "chat/train-00000.jsonl", (mutations.damage_lines,),
           ("import swift-chat chat/train-00000.jsonl -o out --workers 1",), checks="out", weight=4),
    Target("export", "chat/carina.json", _JSON, ("export trek --to chat --layout swift -o chat --workers 1",)),
    Target("description of a classifier", "onnx/carina.json", _JSON,
           ("run percept --model onnx:onnx -o out --limit 2",), weight=2),
    Target("classifier", "onnx/model.onnx", (mutations.damage_bytes,),
           ("run percept --model onnx:onnx -o out --limit 2",), weight=2),
    Target("settings of a CLIP model", "clip/*.json", _JSON,
           ("explain probes --model clip:clip -o out --workers 1 --no-controls --limit 2",), weight=3),
    Target("weights of a CLIP model", "clip/*.safetensors", (mutations.damage_bytes,),
           ("explain probes --model clip:clip -o out --workers 1 --no-controls --limit 2",), weight=2),
    Target("settings of a chat model", "llava/*.json", _JSON,
           ("run percept --model hf:llava -o out --limit 1 --max-tokens 4",), weight=3),
    Target("weights of a chat model", "llava/*.safetensors", (mutations.damage_bytes,),
           ("run percept --model hf:llava -o out --limit 1 --max-tokens 4",)),
)  # fmt: skip


# ---- inputs --------------------------------------------------------------------------------------------------------


def make_inputs(root: Path, *, with_models: bool) -> None:
    """Everything that can be damaged, below `root`."""
    commands = (
        *INPUT_COMMANDS,
        ("export", "percept", "--to", "chexpercept", "-o", "bundle", "--workers", "1"),
        ("export", "trek", "--to", "chat", "--layout", "swift", "-o", "chat", "--workers", "1"),
    )
    (root / "tmp").mkdir()
    for words in commands:
        outcome = run_forked(words, root, seconds=600)
        if outcome.code != 0:
            raise SystemExit(f"carina {' '.join(words)} exits with {outcome.code}: {outcome.text}")
    _make_map_files(root)
    (root / "limits.yaml").write_text(_some_limits())
    shutil.copy(TABLE, root / "prices.yaml")
    outcome = run_forked(
        f"{_SCORES[0].replace('-o out', '-o tuned')} --split val --profile chexlocalize --tune thresholds.json".split(),
        root,
        seconds=60,
    )
    if outcome.code != 0:
        raise SystemExit(f"thresholds: {outcome.text}")
    if with_models:
        _make_models(root)


def _some_limits() -> str:
    lines = []
    for info in list_gates(["percept"]):
        numbers = {
            limit.name: limit.default
            for limit in info.list_limits()
            if isinstance(limit.default, int | float)
        }
        if numbers:
            lines.append(
                f"{info.name}:\n" + "".join(f"  {name}: {value}\n" for name, value in numbers.items())
            )
    return "".join(lines)


def _make_map_files(root: Path) -> None:
    """Maps of two images and two findings in every format, with their regions in two layouts."""
    folder, pickles = root / "files", root / "pickles"
    folder.mkdir()
    pickles.mkdir()
    generator = np.random.default_rng(0)
    regions: dict[str, Any] = {}
    coco: dict[str, Any] = {"images": [], "categories": [{"id": 1, "name": "Edema"}, {"id": 2, "name": "Nodule"}],
                            "annotations": []}  # fmt: skip
    for number in range(4):
        name = f"patient{number:05d}_study1_view1_frontal"
        mask = np.zeros((24, 20), bool)
        mask[4 : 12 + number, 5:11] = True
        encoded = Region.from_mask(mask).to_coco()
        regions[name] = {"Edema": encoded, "Nodule": Region.empty(24, 20).to_coco()}
        coco["images"].append({"id": number, "file_name": f"{name}.png", "height": 24, "width": 20})
        coco["annotations"].append(
            {"id": number, "image_id": number, "category_id": 1, "bbox": [5.0, 4.0, 6.0, 8.0]}
        )
        values = generator.random((12, 10)).astype(np.float32)
        match number:
            case 0:
                np.save(folder / f"{name}_Edema_map.npy", values)
            case 1:
                np.savez(
                    folder / f"{name}_Edema_map.npz", map=values, dims=np.array([20, 24]), prob=np.array(0.7)
                )
            case 2:
                write_png(folder / f"{name}_Edema_map.png", (values * 255).astype(np.uint8))
            case 3:
                Image.fromarray(values).save(folder / f"{name}_Edema_map.tif")
        with (pickles / f"{name}_Edema_map.pkl").open("wb") as file:
            pickle.dump({"map": values, "prob": 0.5, "task": "Edema", "gt": 1, "cxr_dims": (20, 24)}, file)
    (root / "regions.json").write_text(json.dumps(regions))
    (root / "coco.json").write_text(json.dumps(coco))
    rows = "".join(f"{name},{name[:12]}\n" for name in regions)
    (root / "patients.csv").write_text(f"id,patient\n{rows}")


def _make_models(root: Path) -> None:
    """Tiny random models in the published layouts, as the tests make them."""
    for folder in ("models/clip", "models/in_process"):
        sys.path.insert(0, str(_TESTS / folder))
    importlib.import_module("tiny_clip").save("clip", root / "clip")
    importlib.import_module("tiny").save_tiny("llava", root / "llava")
    _make_classifier(root / "onnx")


def _make_classifier(folder: Path) -> None:
    onnx = importlib.import_module("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["mean4"]),
        helper.make_node("Flatten", ["mean4"], ["mean"]),
        helper.make_node("Identity", ["mean"], ["p"]),
    ]
    graph = helper.make_graph(
        nodes,
        "brightness",
        [helper.make_tensor_value_info("image", number, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("p", number, ["batch", 1])],
    )
    folder.mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    described = {"kind": "carina/classifier", "schema": "1.0", "input": {"size": [8, 8]}, "output": "p",
                 "findings": ["edema"]}  # fmt: skip
    (folder / "carina.json").write_text(json.dumps(described))


def _copy_links(source: Path, target: Path, folders: Sequence[str]) -> None:
    """Copy a tree of files by hard links: a command that changed a file in place would be seen in the next input."""
    for folder in folders or (".",):
        shutil.copytree(
            source / folder, target / folder, copy_function=os.link, symlinks=True, dirs_exist_ok=True
        )


# ---- judging -------------------------------------------------------------------------------------------------------


def judge(
    target: Target,
    command: str,
    words: str,
    outcome: Outcome,
    *,
    folder: Path,
    tally: Tally,
    seen: Counter[str],
) -> None:
    """Count what came of a damaged input, and note every broken promise once for each place in the program."""
    place = f"{target.name}: {words}: carina {command}"

    def fail(kind: str, detail: str) -> None:
        signature = f"{kind}: {command.split(maxsplit=1)[0]}: {detail}"
        seen[signature] += 1
        tally.count(f"broken: {kind}")
        if seen[signature] == 1:
            tally.fail(f"{kind}: {place}: {detail}")
            if kind == "traceback":
                print(outcome.text[-3000:], file=sys.stderr, flush=True)

    if outcome.code is None:
        fail("hang", f"over {LIMIT_SECONDS} s")
        return
    if outcome.bytes > LIMIT_BYTES:
        fail("memory", f"{outcome.bytes / 1e9:.1f} GB")
    if "Traceback (most recent call last)" in outcome.text or outcome.code == CRASHED:
        frames = [line for line in outcome.text.splitlines() if line.startswith("  File ")]
        last = [line for line in outcome.text.splitlines() if line.strip()][-1:]
        fail("traceback", f"{frames[-1].strip() if frames else ''} {last[0][:200] if last else ''}")
    elif outcome.code not in (0, 1, REFUSED):
        fail("exit code", f"{outcome.code}: {outcome.text[-200:]}")
    elif outcome.code != 0 and not outcome.text.strip():
        fail("silence", f"exits with {outcome.code} and prints nothing")
    for access in outcome.outside:
        fail("outside", access)
    # Of many cases, `show` shows the first few; it refuses to show an unsound one. `build` leaves unsound studies out.
    if outcome.code == 0 and target.checks and not command.startswith(("check", "show", "build")):
        checked = run_forked(["check", target.checks, "--no-files"], folder)
        if checked.code != 0:
            fail("accepted what check refuses", checked.text.strip()[-300:])
    tally.count(
        {0: "accepted", 1: "reported (exit 1)", REFUSED: "refused with a sentence"}.get(outcome.code, "other")
    )


def drill(folder: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Damage one file at a time, and run one command on it."""
    import_everything(with_models=not given.short)
    base = folder / "base"
    base.mkdir()
    make_inputs(base, with_models=not given.short)
    damage_inputs(folder, base, TARGETS, tally, given, total=SHORT if given.short else INPUTS)


def damage_inputs(
    folder: Path,
    base: Path,
    all_targets: Sequence[Target],
    tally: Tally,
    given: argparse.Namespace,
    *,
    total: int,
) -> None:
    """Damage one file of a copy of `base` at a time, and run one of the commands that read it."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text("{}")
    shutil.copy(next(base.rglob("*.png")), outside / "secret.png")
    before = sorted(path.name for path in folder.iterdir()), sorted(path.name for path in outside.iterdir())
    targets = [target for target in all_targets if any(base.glob(target.files))]
    weights = [target.weight for target in targets]
    seen: Counter[str] = Counter()
    slowest = largest = 0.0
    for number in range(given.first, min(total, given.first + (given.inputs or total))):
        draw = random.Random(f"{given.seed} {number}")  # noqa: S311 - nothing secret
        target = draw.choices(targets, weights)[0]
        work = folder / WORK
        _copy_links(base, work, target.folders)
        path = draw.choice(sorted(path for path in work.glob(target.files) if path.is_file()))
        words = draw.choice(target.damages)(path, draw)
        if target.manifest and draw.random() < 0.9:
            mutations.repair_manifest(work / target.manifest)
        command = draw.choice(target.commands)
        if given.verbose:
            print(number, target.name, path.relative_to(work), words, command, flush=True)
        outcome = run_forked(command.split(), work)
        tally.count("inputs")
        if not given.short and not (number + 1) % 250:
            print(f"{number + 1} of {total}", file=sys.stderr, flush=True)
        tally.count(f"  {target.name}")
        slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.bytes)
        damaged = f"input {number}, {path.relative_to(work)}, {words}"
        judge(target, command, damaged, outcome, folder=work, tally=tally, seen=seen)
        shutil.rmtree(work)
        after = (
            sorted(path.name for path in folder.iterdir() if path != work),
            sorted(path.name for path in outside.iterdir()),
        )
        if after != before:
            tally.fail(f"input {number}: {command}: {words}: files outside changed: {after}")
            before = after
    tally.count("slowest, ms", round(slowest * 1000))
    tally.count("largest, MB", round(largest / 1e6))


def import_everything(*, with_models: bool) -> None:
    """Import what the commands import when they run, so that forked processes need not."""
    left_out = _NOT_IMPORTED if with_models else (*_NOT_IMPORTED, *_NEED_TORCH)
    for module in pkgutil.walk_packages(carina.__path__, "carina."):
        if not module.name.startswith(left_out):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    importlib.import_module("cv2").setNumThreads(1)
    _command()
    if with_models:
        importlib.import_module("torch").set_num_threads(1)
    gc.freeze()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=int, default=0, help="number of the first input, to make one again")
    parser.add_argument("--inputs", type=int, help="number of inputs; all from the first by default")
    parser.add_argument("--verbose", action="store_true", help="print every input")


if __name__ == "__main__":
    main(
        "fuzz",
        "Damage the files that Carina reads, and see what its commands make of them.",
        drill,
        add_options,
    )

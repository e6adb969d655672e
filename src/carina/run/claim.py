"""Whose a run's directory is: taken up where the same is asked, grown where more of the same is, refused otherwise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

import carina
from carina.errors import CarinaError
from carina.files import write_bytes
from carina.run.records import RunInfo

RUN_FILE: Final = "run.json"
_MAJORS: Final = ("1", "2")
"""Of the layouts that are read. In tables of the first, `history` is what is `seen_sha256` now."""
_MAY_DIFFER: Final = frozenset({"schema", "carina", "id", "benchmark", "calls", "text_models"})
"""What does not decide what is asked."""
_CHOICE: Final = frozenset({"cases", "limit", "sample_per_cell"})
"""What decides which cases are, and may grow."""


def read_info(run: Path) -> RunInfo:
    """`run.json` of a run."""
    path = run / RUN_FILE
    try:
        info = msgspec.json.decode(path.read_bytes(), type=RunInfo)
    except FileNotFoundError:
        raise CarinaError(f"{run}: holds no run ({RUN_FILE} is missing)") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CarinaError(f"{path}: not a run's description: {error}") from error
    if info.schema.partition(".")[0] not in _MAJORS:
        raise CarinaError(
            f"{path}: written with schema {info.schema}; this Carina ({carina.__version__}) reads up to {_MAJORS[-1]}.x"
        )
    return info


def write_info(run: Path, info: RunInfo) -> None:
    """Write `run.json`, whole or not at all."""
    write_bytes(run / RUN_FILE, msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")


def claimed(
    out: Path, info: RunInfo, everything: Callable[[], Sequence[str]], tell: Callable[[str], object]
) -> RunInfo:
    """The run to go on with: the one that lies there, with more cases where more are chosen; else the one given.

    `everything` gives the ids of the benchmark, which "all cases" stands for. Any other run is refused with the
    difference. Nothing is written.
    """
    path = out / RUN_FILE
    # What a killed call left under a temporary name is nobody's.
    others = [each for each in out.iterdir() if each != path and not each.name.startswith(f".{RUN_FILE}.")]
    if not path.exists() and others:
        raise CarinaError(f"{out}: is not empty and holds no run: choose another directory")
    if not any(each.stat().st_size for each in others):
        # Nothing was answered yet, so a call that could not begin binds nobody.
        return info
    there = read_info(out)
    told = "; ".join(_differences(msgspec.to_builtins(info), msgspec.to_builtins(there)))
    if told:
        raise CarinaError(f"{out}: holds another run ({told}): choose another directory for this one")
    if there.carina != info.carina:
        tell(
            f"{out}: begun with carina {there.carina}, goes on with {info.carina}; answers of before stay as they "
            "were read and scored"
        )
    # What is written from here on is of the layout of today.
    return _grown(out, msgspec.structs.replace(there, schema=info.schema), info, everything, tell)


def _grown(
    out: Path,
    there: RunInfo,
    info: RunInfo,
    everything: Callable[[], Sequence[str]],
    tell: Callable[[str], object],
) -> RunInfo:
    """The run that lies there with the cases that are chosen now, where they hold all that were chosen before."""
    if there.cases == info.cases:
        return there
    whole = everything()
    before = frozenset(whole if there.cases is None else there.cases)
    now = frozenset(whole if info.cases is None else info.cases)
    if before == now:
        return there
    if now < before:
        raise CarinaError(
            f"{out}: holds a run of {len(before)} cases, more than the {len(now)} that are chosen now: a run grows and "
            f"does not shrink; choose as before ({_chosen_by(there)}), or another directory"
        )
    missing = len(before - now)
    if missing:
        raise CarinaError(
            f"{out}: holds a run of {len(before)} cases, {missing} of which are not among the {len(now)} that are "
            f"chosen now: a run grows and keeps its own; choose more than before ({_chosen_by(there)}), or another "
            "directory"
        )
    tell(f"{out}: grows from {len(before)} to {len(now)} cases")
    return msgspec.structs.replace(there, cases=info.cases, selection=info.selection)


def _chosen_by(info: RunInfo) -> str:
    """How cases were chosen, in the words of the command line."""
    given = {name: info.selection.get(name) for name in ("limit", "sample_per_cell")}
    words = [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if value is not None]
    return " ".join(words) or "no --limit"


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """What is not the same and must be, field by field."""
    for name, mine in ours.items():
        yours = theirs.get(name)
        if name in _MAY_DIFFER or name in _CHOICE or mine == yours:
            continue
        if isinstance(mine, dict) and isinstance(yours, dict):
            yield from _differences(mine, yours)
        elif name == "weights" and yours is None:
            continue  # begun before models had one
        elif name == "weights":
            yield f"weights {_short(yours, 12)}, not {_short(mine, 12)}: other files under the same name"
        else:
            yield f"{name} {_short(yours)}, not {_short(mine)}"


def _short(value: object, most: int = 57) -> str:
    text = str(value)
    return text if len(text) <= most + 3 else f"{text[:most]}..."

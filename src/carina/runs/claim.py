"""Resume, extend or refuse a run directory; read and write `run.json`."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from carina.runs.layout import LAYOUT
from carina.runs.log import LOG_PATTERN, read_log
from carina.runs.records import SCHEMA, PromptInfo, RunInfo
from carina.runs.steps_table import STEPS_FILE, StepsTable
from carina.store.documents import decode_json, read_file, read_stored_path
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.manifest import check_header
from carina.store.resume import contents

RUN_FILE: Final = LAYOUT.file
_MAY_DIFFER: Final = frozenset(
    {
        "schema",
        "carina",
        "id",
        "benchmark",
        "calls",
        "text_models",
        "case_count",
        "log_names_run",
        "table",
        "own_system",
    }
)
"""Fields that do not decide what is asked."""
_IDENTIFYING: Final = (
    "kind", "model", "blind", "policy", "system", "max_side", "sampling", "benchmark_command", "fingerprint",
)  # fmt: skip
"""Fields that identify a run in its log. A list of its own: a field that is added later would disown older logs."""
_SELECTION: Final = frozenset({"cases", "limit", "sample_per_cell"})
"""Fields that select the cases, which may become more."""


def read_info(run: Path) -> RunInfo:
    """Read `run.json` of a run, after checking its kind and schema.

    Args:
        run: Directory of the run.

    Returns:
        The model, options and counts of the run.

    Raises:
        CarinaError: The directory holds no run, or `run.json` is damaged or of another schema.

    Example:
        >>> read_info(Path("runs/reader")).model
        'builtin/reader'
    """
    path = run / RUN_FILE
    if not os.path.lexists(path):
        raise CarinaError(f"{run}: holds no run ({RUN_FILE} is missing)")
    content = read_file(path)
    check_header(
        path, content, kind="run", title="the description of a run", schema=SCHEMA, error_class=CarinaError
    )
    info = decode_json(content, RunInfo, path=path, what="the description of a run")
    read_stored_path(info.benchmark, where=f"{path}: benchmark")
    return info


def identify_run(info: RunInfo) -> str:
    """A short name of what a run asks: model, options and benchmark. Every line of its log states it.

    Without the fingerprint of weights, which runs of earlier versions lack.
    """
    values = msgspec.to_builtins(info)
    asked = {name: values[name] for name in _IDENTIFYING}
    if info.request:  # a field that was added later
        asked["request"] = info.request
    asked["selection"] = {
        name: value
        for name, value in info.selection.items()
        # Runs of earlier versions have no split and no prompts of their own.
        if name not in _SELECTION and (name != "split" or value is not None)
    }
    if info.prompts != PromptInfo(own_system=info.prompts.own_system):
        asked["prompts"] = _identify_prompts(values["prompts"])
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()[:16]


def _identify_prompts(prompts: dict[str, Any]) -> dict[str, Any]:
    """Prompts without the system prompt, which is identified by its text, and the place of the examples."""
    examples = prompts["examples"]
    named = {name: prompts[name] for name in ("style", "image_order", "image_detail")}
    return named | {"examples": examples and {name: examples[name] for name in ("fingerprint", "ids")}}


def write_info(run: Path, info: RunInfo) -> None:
    """Write `run.json`, whole or not at all."""
    write_bytes(run / RUN_FILE, msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")


def claim_run(
    out: Path, info: RunInfo, all_ids: Callable[[], Sequence[str]], notify: Callable[[str], object]
) -> RunInfo:
    """Decide what happens with the run that lies in a directory.

    Nothing is written. Of another run without a single answer, as a failed start leaves it, the log and the table are
    removed: it is begun anew.

    Args:
        out: Directory of the run.
        info: The run that the user asks for.
        all_ids: Gives the ids of the benchmark, which "all cases" stands for.
        notify: Called with a sentence where the user may not expect what happens.

    Returns:
        The run to go on with: the one in the directory, extended by the cases that are selected now, or `info`.

    Raises:
        CarinaError: The directory holds another run, or other files.
    """
    path = out / RUN_FILE
    others = [each for each in contents(out) if each != path]
    if not os.path.lexists(path):
        if others:
            raise CarinaError(f"{out}: is not empty and holds no run; choose another directory")
        return info
    existing = read_info(out)
    if not any(each.stat().st_size for each in others):
        # No step was answered yet, so a call that failed at its start decides nothing.
        return info
    different = "; ".join(_differences(msgspec.to_builtins(info), msgspec.to_builtins(existing)))
    if (different or existing.cases != info.cases) and not _holds_answers(out, existing):
        for file in _results(out):
            file.unlink()
        return info
    if different:
        raise CarinaError(f"{out}: holds another run ({different}); choose another directory for this one")
    if existing.carina != info.carina:
        notify(
            f"{out}: started with carina {existing.carina}, continues with {info.carina}; earlier answers stay as they "
            "were parsed and scored"
        )
    # What is written from here on has the current layout.
    return _extend(out, msgspec.structs.replace(existing, schema=info.schema), info, all_ids, notify)


def _results(out: Path) -> list[Path]:
    """The logs and the table of a run."""
    return [*sorted(out.glob(LOG_PATTERN)), *out.glob(STEPS_FILE)]


def _holds_answers(out: Path, info: RunInfo) -> bool:
    """Whether any step of a run was answered. What cannot be read may hold answers."""
    try:
        if any(
            entry.row.state == "answered" for entries in read_log(out).values() for entry in entries.values()
        ):
            return True
        table = StepsTable(out / STEPS_FILE, info)
        return table.exists() and "answered" in table.read(("state",))["state"].to_list()
    except CarinaError:
        return True


def _extend(
    out: Path,
    existing: RunInfo,
    info: RunInfo,
    all_ids: Callable[[], Sequence[str]],
    notify: Callable[[str], object],
) -> RunInfo:
    """The existing run with the cases that are selected now, if all of its own cases are among them."""
    if existing.cases == info.cases:
        return existing
    whole = all_ids()
    before = frozenset(whole if existing.cases is None else existing.cases)
    now = frozenset(whole if info.cases is None else info.cases)
    if before == now:
        return existing
    if now < before:
        raise CarinaError(
            f"{out}: holds a run of {len(before)} cases, more than the {len(now)} that are selected now. A run can be "
            f"extended, not reduced: select as before ({_describe_selection(existing)}) or choose another directory"
        )
    missing = len(before - now)
    if missing:
        raise CarinaError(
            f"{out}: holds a run of {len(before)} cases, {missing} of which are not among the {len(now)} that are "
            f"selected now. A run keeps its cases: select more than before ({_describe_selection(existing)}) or "
            "choose another directory"
        )
    notify(f"{out}: extended from {len(before)} to {len(now)} cases")
    return msgspec.structs.replace(existing, cases=info.cases, selection=info.selection)


def _describe_selection(info: RunInfo) -> str:
    """How cases were selected, as options of the command line."""
    given = {name: info.selection.get(name) for name in ("limit", "sample_per_cell")}
    words = [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if value is not None]
    return " ".join(words) or "no --limit"


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Differences in the fields that must be equal, also those that only one of the two has."""
    for name in {**ours, **theirs}:
        mine, yours = ours.get(name), theirs.get(name)
        if name in _MAY_DIFFER or name in _SELECTION or mine == yours:
            continue
        if name == "extra_body":
            # Its fields may be named as fields of a run are.
            yield f"extra_body {_short(yours)}, not {_short(mine)}"
        elif name == "system" and isinstance(mine, dict) and isinstance(yours, dict):
            yield from _prompt_differences(mine, yours)
        elif name == "examples" and not (isinstance(mine, dict) and isinstance(yours, dict)):
            yield "without examples, not with them" if mine else "with examples, not without them"
        elif isinstance(mine, dict) and isinstance(yours, dict):
            yield from _differences(mine, yours)
        elif name == "weights" and yours is None:
            continue  # started before runs had this field
        elif name == "weights":
            yield f"weights {_short(yours, 12)}, not {_short(mine, 12)}: other files under the same name"
        else:
            yield f"{name} {_short(yours)}, not {_short(mine)}"


def _prompt_differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """System prompts that differ, from the place on where they do."""
    for protocol in sorted({*ours, *theirs}):
        mine, yours = ours.get(protocol, ""), theirs.get(protocol, "")
        if mine != yours:
            pairs = zip(mine, yours, strict=False)
            same = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(yours)))
            yield f"system prompt of {protocol} {_from(yours, same)}, not {_from(mine, same)}"


def _from(text: str, place: int) -> str:
    """A text from a few characters before a place on, quoted."""
    start = max(0, place - 15)
    return repr(("..." if start else "") + _short(text[start:])) if text else "empty"


def _short(value: object, most: int = 57) -> str:
    text = str(value)
    return text if len(text) <= most + 3 else f"{text[:most]}..."

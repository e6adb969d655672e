"""The bank of replies: what models write, how a careful person reads it, and why."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from carina.cases import Option, Step

FOLDER = Path(__file__).parent / "replies"
IMAGES = {"a.png": (400, 200), "b.png": (100, 100)}
"""Width and height of the images that the steps are about."""
FAILURES = ("refusal", "truncated", "no_answer", "out_of_range", "too_many", "ambiguous")


class BankedReply(NamedTuple):
    """One reply of the bank."""

    id: str
    kind: str
    step: Step
    reply: str
    reading: Any
    """Numbers of options from 1, a label, boxes, "text", or the class of the failure."""
    why: str
    stop: str


def load_steps() -> dict[str, Step]:
    stored = yaml.safe_load((FOLDER / "steps.yaml").read_text(encoding="utf-8"))
    return {name: _make_step(**fields) for name, fields in stored.items()}


def _make_step(question, options=(), ids=None, format="choice", *, multiple=False):  # noqa: A002 - as in the file
    names = ids or [f"o{n}" for n in range(1, len(options) + 1)]
    listed = "\n".join(f"({n}) {text}" for n, text in enumerate(options, start=1))
    return Step(
        id="s",
        stage=1,
        task="t",
        format=format,
        question=f"{question}\nOptions:\n{listed}" if options else question,
        options=tuple(Option(id=name, text=text) for name, text in zip(names, options, strict=True)),
        multiple=multiple,
    )


def load_bank() -> list[BankedReply]:
    steps = load_steps()
    return [
        BankedReply(
            id=entry["id"],
            kind=entry["class"],
            step=steps[entry["step"]],
            reply=entry["reply"],
            reading=entry["reading"],
            why=entry["why"],
            stop=entry.get("stop", "stop"),
        )
        for path in sorted(FOLDER.glob("*.yaml"))
        if path.name != "steps.yaml"
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def read_as_person_would(parsed, step):
    """A parsed answer in the form of the bank."""
    if parsed.status != "ok":
        return parsed.status
    if parsed.label is not None:
        return parsed.label
    if parsed.options:
        ids = [option.id for option in step.options]
        return [ids.index(name) + 1 for name in parsed.options]
    if step.format == "boxes":
        return [[round(at, 3) for at in box.xyxy] for box in parsed.boxes]
    return "text"

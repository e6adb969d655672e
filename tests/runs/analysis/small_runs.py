"""A small examination that can be worked out by hand: six cases of five patients, and what models made of them.

Cases are percept's in brief. RR has steps 1, 2, 3a, 3c, 4a, 4c; RF has 1, 2, 4a, 4c; LF has 1. The runs:

            RR1 (A)       RR2 (B)             RF1 (C)    RF2 (A)         LF1 (D)  LF2 (E)
target      consolidation edema               consolid.  edema           consol.  edema
alpha own   all right     3a wrong            all right  2, 4a wrong     right    wrong
alpha gold  all right     3a wrong            all right  2 wrong         right    wrong
beta own    2, 3c, 4a     all wrong,          1, 4c      1 right, then   wrong    right
            wrong         3a refused          wrong      a failure
majority    "yes" and no other right answer

And under other histories, where the test asks for them:

alpha hint  all right     all right           all right  2 wrong         right    wrong
alpha none  4a wrong      3a wrong            all right  2, 4a wrong     right    wrong
majority gold                                 the same answers as with its own
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq

from carina.cases import Benchmark, Case, Provenance, Step, open_benchmark, write_benchmark
from carina.cases.messages import answer, prompt_text
from carina.cases.model import (
    Branch,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Mark,
    Option,
    Overlay,
    Panel,
)
from carina.runs.info import fingerprint
from carina.runs.records import Policy, RunInfo, StepRow
from carina.store.tables import to_table
from carina.studies import Region, write_png

SIDE = 64
IMAGE = "images/a.png"
CHANCE = {"1": 1 / 2, "2": 1 / 2, "3a": 1 / 8, "3c": 1 / 4, "4a": 1 / 4, "4c": 1 / 3}
CASES = {
    "RR1": ("A", "consolidation", "low", 0.02),
    "RR2": ("B", "edema", "high", 0.04),
    "RF1": ("C", "consolidation", "low", 0.06),
    "RF2": ("A", "edema", "high", 0.08),
    "LF1": ("D", "consolidation", None, None),
    "LF2": ("E", "edema", None, None),
}
"""Patient, target, severity and lesion size by case."""
SEEN = {"RR1": 1.0, "RF1": 2.0, "RF2": 3.0, "RR2": 4.0}
"""How conspicuous the lesions are."""
WRONG = {
    "alpha": {"RR2": ("3a",), "RF2": ("2", "4a"), "LF2": ("1",)},
    "alpha-gold": {"RR2": ("3a",), "RF2": ("2",), "LF2": ("1",)},
    "beta": {
        "RR1": ("2", "3c", "4a"),
        "RR2": ("1", "2", "3a", "3c", "4a", "4c"),
        "RF1": ("1", "4c"),
        "LF1": ("1",),
    },
    "alpha-hint": {"RF2": ("2",), "LF2": ("1",)},
    "alpha-none": {"RR1": ("4a",), "RR2": ("3a",), "RF2": ("2", "4a"), "LF2": ("1",)},
    "majority": {
        "RR1": ("3a", "3c", "4a", "4c"),
        "RR2": ("3a", "3c", "4a", "4c"),
        "RF1": ("2", "4a", "4c"),
        "RF2": ("2", "4a", "4c"),
        "LF1": ("1",),
        "LF2": ("1",),
    },
}
MODELS = {
    "alpha": ("lab/alpha", "own"),
    "alpha-gold": ("lab/alpha", "gold"),
    "beta": ("lab/beta", "own"),
    "majority": ("builtin/majority", "own"),
}
HISTORIES = {
    "alpha-hint": ("lab/alpha", "hint"),
    "alpha-none": ("lab/alpha", "none"),
    "majority-gold": ("builtin/majority", "gold"),
}
"""More runs of the same models."""


# ---- the benchmark --------------------------------------------------------------------------------------------------


def question(step: str, task: str, options: Mapping[str, str], right: Sequence[str], **more: object) -> Step:
    lines = [f"({place}) {text}" for place, text in enumerate(options.values(), start=1)]
    return Step(
        id=step,
        stage=int(step[0]),
        task=task,
        format="choice",
        question="\n".join([f"What of <{task}> & so on?", "Options:", *lines]),
        options=more.pop("made", tuple(Option(id=key, text=text) for key, text in options.items())),
        key=Key(options=tuple(right), kinds=more.pop("kinds", ())),
        uses=("v1",),
        **more,
    )


def case(name: str) -> Case:
    patient, target, severity, size = CASES[name]
    path = name[:2]
    mask = np.zeros((SIDE, SIDE), bool)
    mask[20:40, 10:30] = True
    over = Panel(image=IMAGE, overlays=(Overlay(region="r1"),))
    marks = tuple(
        Mark(x=10 + 12 * n, y=30, colour=colour, text=str(n)) for n, colour in enumerate(("red", "blue"), 1)
    )
    views = (
        CaseView(id="v1", panels=(Panel(image=IMAGE),)),
        CaseView(id="v2", panels=(over,)),
        CaseView(id="v3", panels=(Panel(image=IMAGE, overlays=over.overlays, marks=marks),)),
    )
    there = Branch(step="1", options=("yes",))
    wrong = Branch(step="2", options=("yes",))
    yes_no = {"yes": "Yes", "no": "No"}
    steps = [
        question("1", "detection", yes_no, ["no" if path == "LF" else "yes"], shows=("v1",)),
        question("2", "contour evaluation", yes_no, ["yes" if path == "RR" else "no"], shows=("v2",),
                 reached_by=(there,)),
        question("3a", "expansion", {"p1": "red point", "p2": "blue point", "none": "None"}, ["p1"], multiple=True,
                 score="set", shows=("v3",), kinds=("expansion", "inside", "none"), reached_by=(there, wrong),
                 made=(Option(id="p1", text="red point", mark="1"), Option(id="p2", text="blue point", mark="2"),
                       Option(id="none", text="None"))),
        question("3c", "revision", {f"o{n}": f"{n}. mask" for n in (1, 2, 3, 4)}, ["o2"],
                 kinds=("partial", "key", "overshoot", "wrong_place"), reached_by=(there, wrong)),
        question("4a", "distribution", {str(n): f"{n} zones" for n in (1, 2, 3, 4)}, ["2"], reached_by=(there,)),
        question("4c", "severity", {"low": "less than 1/3", "mid": "to 2/3", "high": "2/3 or more"},
                 [severity or "low"], reached_by=(there,)),
    ]  # fmt: skip
    kept = {"RR": "1 2 3a 3c 4a 4c", "RF": "1 2 4a 4c", "LF": "1"}[path].split()
    facts = [Fact(name="lesion share of image", value=size)] if size is not None else []
    facts += [Fact(name="conspicuity", value=SEEN[name])] if name in SEEN else []
    return Case(
        id=f"c-{name}",
        protocol="percept",
        study=f"s-{name}",
        patient=patient,
        source="phantom",
        target=target,
        path=path,
        images=(CaseImage(key=IMAGE, width=SIDE, height=SIDE, view="AP" if patient in "AB" else "PA"),),
        regions=(CaseRegion(name="r1", image=IMAGE, region=Region.from_mask(mask)),),
        views=views if path == "RR" else views[: 1 + (path == "RF")],
        steps=tuple(step for step in steps if step.id in kept),
        facts=tuple(facts),
    )


def bench(directory: Path) -> Benchmark:
    write_png(directory / IMAGE, np.tile(np.linspace(0, 255, SIDE), (SIDE, 1)).astype(np.uint8))
    write_benchmark(directory, [case(name) for name in CASES], Provenance(command="test"))
    return open_benchmark(directory)


# ---- runs -----------------------------------------------------------------------------------------------------------


def row(case: Case, step: Step, number: int, **more: object) -> StepRow:
    """A step of a case; nothing of the answer but what is given."""
    made: dict[str, object] = {
        "case": case.id,
        "study": case.study,
        "patient": case.patient,
        "protocol": case.protocol,
        "source": case.source,
        "target": case.target,
        "path": case.path,
        "number": number,
        "step": step.id,
        "stage": step.stage,
        "task": step.task,
        "format": step.format,
        "multiple": step.multiple,
        "options": len(step.options),
        "state": "answered",
        "gold": answer(case, step),
        "gold_options": step.key.options,
        "gold_label": step.key.label,
        "chance": CHANCE.get(step.id),
    }
    return StepRow(**(made | more))


def answered(case: Case, step: Step, number: int, *, right: bool, **more: object) -> StepRow:
    """A right or a wrong answer: the right options, or the first wrong one."""
    wrong = tuple(option.id for option in step.options if option.id not in step.key.options)[:1]
    chosen = step.key.options if right else wrong
    kinds = dict(zip((option.id for option in step.options), step.key.kinds, strict=False))
    told: dict[str, object] = {
        "prompt": prompt_text(step),
        "views": step.shows,
        "raw": f"<b>I say</b> {', '.join(step.option(name).text for name in chosen)}",
        "status": "ok",
        "answer": chosen,
        "kinds": tuple(kinds[name] for name in chosen if name in kinds and not right),
        "correct": right,
        "score": float(right),
        "seconds": 0.5,
        "input_tokens": 100,
        "output_tokens": 10,
        "images": 2,
    }
    if step.multiple:
        told |= {"overlap": float(right), "f1": float(right)}
    return row(case, step, number, **(told | more))


def rows(cases: Benchmark, run: str) -> list[StepRow]:
    """What a model of the table above answered."""
    run = "majority" if run == "majority-gold" else run
    made = []
    for one in cases:
        name = one.id.removeprefix("c-")
        for number, step in enumerate(one.steps):
            if run == "beta" and name == "RF2" and number > 0:
                made.append(
                    row(
                        one,
                        step,
                        number,
                        state="incomplete",
                        error="connection lost" if number == 1 else None,
                    )
                )
                continue
            right = step.id not in WRONG[run].get(name, ())
            more: dict[str, object] = {}
            if run == "beta" and (name, step.id) == ("RR2", "3a"):
                more = {"status": "refusal", "answer": (), "kinds": (), "raw": "I cannot help with that."}
            if run == "alpha-gold" and (name, step.id) == ("RF2", "4a"):
                more = {"hint": "The contour needed no revision."}
            if step.id == "4c":
                more["obeyed"] = run == "alpha"
            made.append(answered(one, step, number, right=right, **more))
    return made


def write_run(
    path: Path, cases: Benchmark, told: Sequence[StepRow], model: str, history: str, **more: object
) -> Path:
    """`run.json` and `steps.parquet`, beside the benchmark."""
    path.mkdir(parents=True)
    made: dict[str, object] = {
        "carina": "0",
        "id": path.name,
        "model": model,
        "blind": False,
        "policy": Policy(history=history),
        "system": {},
        "max_side": None,
        "sampling": {},
        "benchmark": f"../{cases.directory.name}",
        "benchmark_command": "test",
        "fingerprint": fingerprint(cases),
        "cases": None,
        "selection": {},
    }
    (path / "run.json").write_bytes(msgspec.json.encode(RunInfo(**(made | more))))
    pq.write_table(to_table(StepRow, told), path / "steps.parquet")
    return path


def write_histories(root: Path) -> list[Path]:
    """The benchmark and the runs of models under several histories."""
    cases = bench(root / "bench")
    return [
        write_run(root / name, cases, rows(cases, name), model, history)
        for name, (model, history) in (MODELS | HISTORIES).items()
    ]


def write_all(root: Path) -> list[Path]:
    """The benchmark and the four runs."""
    cases = bench(root / "bench")
    return [
        write_run(root / name, cases, rows(cases, name), model, history)
        for name, (model, history) in MODELS.items()
    ]

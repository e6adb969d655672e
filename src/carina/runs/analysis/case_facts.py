"""What a benchmark knows about its cases beyond the rows of a run: keys in words, order, size, severity, view.

The only module of the analysis that reads the facts of cases and steps.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.cases import Benchmark, Case, Step
from carina.cases.facts import BY_PROGRAM, LesionFacts
from carina.ground.facts import GroundCaseFacts
from carina.percept.facts import PerceptCaseFacts
from carina.percept.protocol import PERCEPT
from carina.runs.analysis.breakdown import Dimension, DimensionTitle, divide_into_thirds
from carina.trek.facts import TrekCaseFacts, TrekStepFacts

_MOST_FINDINGS: Final = 16
_KEYS_IN_A_LIST: Final = 50_000
_SEVERITIES: Final = ("low", "mid", "high")
"""Ids of percept's severity options, in order."""


@dataclass(frozen=True, eq=False)
class CaseFacts:
    """What is known about some cases of a benchmark."""

    dimensions: tuple[Dimension, ...]
    """Every division of the cases that has at least two labels."""
    orders: Mapping[str, int]
    """Number of cases whose questions are in order of their stages ("staged"), and of those that are "shuffled"."""
    by_program: int = 0
    """Number of cases that are keyed by what a program drew and no person has reviewed."""
    stated_by_program: int = 0
    """Number of cases with a key that rests on a finding of which only a program says whether it is present."""


def collect_case_facts(bench: Benchmark, cases: Iterable[str]) -> tuple[CaseFacts, pl.DataFrame]:
    """The facts of some cases of a benchmark, and their right answers.

    Right answers are `key` by `case` and `step`, in words that could fit any case; boxes and free text are left out.
    """
    collector = _Collector()
    for case in bench.pick(sorted(cases)):
        collector.add(case)
    facts = CaseFacts(
        tuple(collector.dimensions()), collector.orders, collector.by_program, collector.stated_by_program
    )
    return facts, collector.keys.to_frame()


def is_keyed_by_program(case: Case) -> bool:
    """Whether a region that the keys of a case rest on was drawn by a program, and reviewed by no person."""
    if GroundCaseFacts.of(case).drawn_by == BY_PROGRAM or TrekCaseFacts.of(case).drawn_by:
        return True
    return any(source.reviewed == "no" for source in PerceptCaseFacts.of(case).sources.values())


def is_stated_by_program(case: Case) -> bool:
    """Whether a key of the case rests on a finding of which only a program says whether it is present."""
    stated = (GroundCaseFacts.of(case).stated_by, PerceptCaseFacts.of(case).stated_by)
    return BY_PROGRAM in stated or bool(TrekCaseFacts.of(case).stated_by)


def step_finding(case: Case, step: Step) -> str | None:
    """The finding that a step asks about, where it is one: the target of its case, or the one the question names."""
    named = set(_target_findings(step))
    return case.target or (named.pop() if len(named) == 1 else None)


class _Keys:
    """Right answers in words by case and step; in a table, which takes a tenth of the memory of a list."""

    def __init__(self) -> None:
        self._tables = [self._to_table([])]
        self._rows: list[tuple[str, str, str]] = []

    def add(self, case: str, step: str, key: str) -> None:
        self._rows.append((case, step, key))
        if len(self._rows) == _KEYS_IN_A_LIST:
            self._tables.append(self._to_table(self._rows))
            self._rows.clear()

    def to_frame(self) -> pl.DataFrame:
        return pl.concat([*self._tables, self._to_table(self._rows)])

    @staticmethod
    def _to_table(rows: Sequence[tuple[str, str, str]]) -> pl.DataFrame:
        columns = {"case": pl.String, "step": pl.String, "key": pl.Categorical}
        return pl.DataFrame(rows, columns, orient="row")


class _Collector:
    """Facts of the cases that were added."""

    def __init__(self) -> None:
        self.keys = _Keys()
        self.orders: Counter[str] = Counter()
        self.by_program = self.stated_by_program = 0
        self._numbers: dict[str, list[tuple[str, float]]] = defaultdict(list)
        self._labels: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._findings: list[tuple[str, str, str]] = []
        self._severity_texts: dict[str, str] = {}

    def add(self, case: Case) -> None:
        self.orders[case.order] += 1
        self.by_program += is_keyed_by_program(case)
        self.stated_by_program += is_stated_by_program(case)
        self._labels["order"].append((case.id, case.order))
        lesion = LesionFacts.of(case)
        self._add_number("size", case, lesion.share_of_image)
        self._add_number("conspicuity", case, lesion.conspicuity)
        probe = GroundCaseFacts.of(case)
        self._add_number("agreement", case, probe.agreement)
        if probe.pieces is not None:
            self._labels["pieces"].append((case.id, "one" if probe.pieces == 1 else "several"))
        if probe.side:
            self._labels["side"].append((case.id, probe.side))
        if case.path == "RR":
            self._add_contour(case, PerceptCaseFacts.of(case))
        views = sorted({image.view for image in case.images if image.role == "current"})
        self._labels["view"].append((case.id, " and ".join(views)))
        for step in case.steps:
            self._add_step(case, step)

    def _add_number(self, name: str, case: Case, value: float | None) -> None:
        if value is not None:
            self._numbers[name].append((case.id, value))

    def _add_contour(self, case: Case, facts: PerceptCaseFacts) -> None:
        """Of the contour that is to be revised: its overlap with the truth, and the number of edits it needs."""
        overlap = facts.iou_with_truth.get(facts.region("shown") or "")
        self._add_number("contour", case, None if overlap is None else overlap.value)
        edits = sum(edit.operation is not None for edit in facts.edits.values())
        self._labels["edits"].append((case.id, str(edits)))

    def _add_step(self, case: Case, step: Step) -> None:
        key = _key_in_words(step)
        if key:
            self.keys.add(case.id, step.id, key)
        is_severity = case.protocol == PERCEPT.name and step.task == "severity"
        if is_severity and len(step.key.options) == 1 and step.options:
            grade = step.key.options[0]
            self._labels["severity"].append((case.id, grade))
            self._severity_texts[grade] = step.option(grade).text
        self._findings += [(case.id, step.id, finding) for finding in _target_findings(step)][:1]

    def dimensions(self) -> Iterator[Dimension]:
        grades = sorted(self._severity_texts, key=_severity_order)
        severities = [(case, self._severity_texts[grade]) for case, grade in self._labels["severity"]]
        yield from _label_dimension(
            DimensionTitle.SEVERITY, severities, [self._severity_texts[grade] for grade in grades]
        )
        thirds = [
            divide_into_thirds(title, self._frame(name), unit, scale=scale, note=note)
            for title, name, unit, scale, note in (
                (DimensionTitle.LESION_SIZE, "size", "%", 100, "share of the image, thirds of the cases"),
                (
                    DimensionTitle.CONSPICUITY,
                    "conspicuity",
                    "",
                    1,
                    "contrast of the lesion, thirds of the cases",
                ),
                (
                    DimensionTitle.CONTOUR,
                    "contour",
                    "",
                    1,
                    "overlap (IoU) of the contour to be revised with the truth",
                ),
                (
                    DimensionTitle.AGREEMENT,
                    "agreement",
                    "",
                    1,
                    "overlap (IoU) of the annotators' regions, thirds of the cases",
                ),
            )
        ]
        yield from (dimension for dimension in thirds if dimension is not None)
        labels = self._labels
        yield from _label_dimension(
            DimensionTitle.PIECES, labels["pieces"], _present(labels["pieces"], ("one", "several"))
        )
        yield from _label_dimension(
            DimensionTitle.SIDE, labels["side"], _present(labels["side"], ("right", "left", "bilateral"))
        )
        yield from _label_dimension(
            DimensionTitle.EDITS, labels["edits"], sorted({label for _, label in labels["edits"]})
        )
        yield from _label_dimension(
            DimensionTitle.ORDER, labels["order"], _present(labels["order"], ("staged", "shuffled"))
        )
        yield from _label_dimension(
            DimensionTitle.VIEW, labels["view"], sorted({label for _, label in labels["view"]})
        )
        frequent = Counter(label for _, _, label in self._findings).most_common(_MOST_FINDINGS)
        findings = tuple(sorted(label for label, _ in frequent))
        if len(findings) > 1:
            rows = pl.DataFrame(self._findings, ["case", "step", "part"], orient="row")
            own = rows.filter(pl.col("part").is_in(findings))
            yield Dimension(DimensionTitle.FINDING, findings, own, "what the question is about")

    def _frame(self, name: str) -> pl.DataFrame:
        return pl.DataFrame(self._numbers[name], {"case": pl.String, "value": pl.Float64}, orient="row")


def _key_in_words(step: Step) -> str:
    """The right answer, whatever the position of the right options among the others."""
    right = sorted(option.text for option in step.options if option.id in step.key.options)
    return "; ".join(right) or (step.key.label or "")


def _target_findings(step: Step) -> list[str]:
    """Names of the findings that a question is about."""
    targets = TrekStepFacts.of(step).targets
    return [target.name for target in targets if target.kind == "finding" and target.name]


def _severity_order(grade: str) -> tuple[bool, int, str]:
    known = grade in _SEVERITIES
    return not known, _SEVERITIES.index(grade) if known else 0, grade


def _present(rows: Sequence[tuple[str, str]], order: Sequence[str]) -> list[str]:
    """Labels that occur, in their order."""
    occurring = {label for _, label in rows}
    return [label for label in order if label in occurring]


def _label_dimension(
    title: DimensionTitle, rows: Sequence[tuple[str, str]], labels: Sequence[str]
) -> Iterator[Dimension]:
    if len(labels) > 1:
        yield Dimension(title, tuple(labels), pl.DataFrame(rows, ["case", "part"], orient="row"))

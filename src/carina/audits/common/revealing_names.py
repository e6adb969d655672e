"""Gate: do names, or the order of names, reveal the answer?

A name may reveal it in words ("option_2_fake.png"). Or the names are harmless and their order is not: the truth is
always the first region, the right option always has the lowest view id, cases of one path lie together in the file.
"""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec

from carina.audits.answer_options import read_choices, task_of
from carina.audits.chance import (
    at_least,
    at_most,
    equal_neighbours,
    expected,
    hit_row,
    normal_tail,
    separation,
)
from carina.audits.facts import region_roles
from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import EXAMPLES, GateResult, Objection, Objections, Row, Status, worst_status
from carina.audits.text_model import hash_text
from carina.cases.model import Case
from carina.stats.proportion import wilson

_REVEALING_WORDS: Final = """answer answers key keys keyed correct incorrect wrong fake true false truth gold positive
    negative pos neg optimal suboptimal distractor distractors deformed deformation undeformed revised unrevised shown
    lf rf rr"""
REVEALING_WORDS: Final = frozenset(_REVEALING_WORDS.split())
"""Words that must not be in a name that reaches a model or a shared file. "right" is missing because it is a side, and
"revision" because it is a stage after which the published layout names its folders."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PART: Final = re.compile(r"(\d+)")
_MOST_ROWS: Final = 50_000
"""Cases whose order is examined; where there are more, those with the lowest hashes."""


@gate(
    "revealing-names",
    title="Revealing names",
    meaning="Neither names nor their order reveal the answer.",
    order=60,
)
class RevealingNames(Gate[NoLimits]):
    """Words in names, and what the order of names predicts."""

    cost = 3.0

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._n = 0
        self._rows: list[tuple[int, str, int, str]] = []
        """Of a sample of the cases: the negative hash, id, place in the file, path."""
        self._hits: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._trials: defaultdict[str, defaultdict[int, Counter[float]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def see(self, case: Case) -> None:
        self._n += 1
        for kind, name in list_names(case):
            revealing = sorted({word.lower() for word in _WORD.findall(name)} & REVEALING_WORDS)
            if revealing:
                self._objections.add(
                    case.id, f"{kind} {name!r} contains the word {', '.join(map(repr, revealing))}"
                )
        if case.path is not None:
            self._keep(case.id, case.path)
        self._count_roles(case)
        self._count_options(case)

    def _keep(self, case: str, path: str) -> None:
        row = (-hash_text(case), case, self._n, path)
        if len(self._rows) < _MOST_ROWS:
            heapq.heappush(self._rows, row)
        else:
            heapq.heappushpop(self._rows, row)

    def _count_roles(self, case: Case) -> None:
        """Ranks of regions with a role, in the order of names and in the order of the list."""
        known = {region.name for region in case.regions}
        roles = {region: role for region, role in region_roles(case).items() if region in known}
        if len(known) < 2:
            return
        listed = [region.name for region in case.regions]
        for ordering, order in (("by name", sorted(listed, key=_natural_sort_key)), ("in the list", listed)):
            for role, times in Counter(roles.values()).items():
                for rank, name in enumerate(order, start=1):
                    is_hit = roles.get(name) == role
                    self._count(f"region {role!r} {ordering}", rank, times / len(order), is_hit=is_hit)

    def _count_options(self, case: Case) -> None:
        """Ranks of right options in the order of the ids of views and marks; words as options are not names."""
        for step in case.steps:
            if read_choices(step) is None:
                continue
            for kind in ("view", "mark"):
                labels = {o.id: getattr(o, kind) for o in step.options if getattr(o, kind) is not None}
                if len(labels) < 2:
                    continue
                share = len(set(step.key.options) & set(labels)) / len(labels)
                for ordering, order in (
                    (f"{kind}s", sorted(labels, key=lambda option: _natural_sort_key(labels[option]))),
                    ("option ids", sorted(labels, key=_natural_sort_key)),
                ):
                    for rank, option in enumerate(order, start=1):
                        is_hit = option in step.key.options
                        self._count(f"{task_of(step)} by order of {ordering}", rank, share, is_hit=is_hit)

    def _count(self, what: str, rank: int, share: float, *, is_hit: bool) -> None:
        self._trials[what][rank][share] += 1
        self._hits[what][rank] += is_hit

    def result(self) -> GateResult:
        orders = [*self._order_rows()]
        tests = sum(map(len, self._trials.values())) + len(orders)
        rows = [self._rank_row(what, tests) for what in sorted(self._trials)]
        rows += [self._judge(row, tests) for row in orders]
        status: Status = "fail" if self._objections else worst_status(*(row.status for row in rows))
        count = self._objections.records
        interval = wilson(count, self._n)
        by_order = [Objection(id=row.name, what=row.note) for row in rows if row.status in ("warn", "fail")]
        return GateResult(
            name=self.name,
            title=self.title,
            status=worst_status(status, "pass") if self._n else "not applicable",
            n=self._n,
            count=count,
            rate=interval.value,
            low=interval.low,
            high=interval.high,
            threshold="no revealing word in a name; no order of names predicts a role, a key or a path "
            f"(fail at {self.context.fail_level:g}, warn at {self.context.warn_level:g}, corrected for all orders)",
            meaning="Neither names nor their order reveal the answer."
            if status not in ("warn", "fail")
            else "Names or their order reveal the answer to anyone who sees them; name and sort by a hash.",
            rows=tuple(rows),
            worst=(*self._objections.worst, *by_order)[:EXAMPLES],
        )

    def _rank_row(self, what: str, tests: int) -> Row:
        rows = []
        for rank, trials in self._trials[what].items():
            hits, n, mean = self._hits[what][rank], sum(trials.values()), expected(trials)
            tail = at_least(hits, trials) if hits > mean else at_most(hits, trials)
            note = f"number {rank} is right {hits} times in {n}, expected {mean:.1f}"
            rows.append(hit_row(what, hits, trials, p=2 * tail, note=note))
        return self._judge(min(rows, key=lambda row: row.p or 0.0), tests)

    def _order_rows(self) -> Iterator[Row]:
        paths = sorted({path for *_, path in self._rows})
        if len(paths) < 2:
            return
        by_id = sorted((case, path) for _, case, _, path in self._rows)
        by_place = sorted((place, path) for *_, place, path in self._rows)
        for ordering, rows in (("case ids", by_id), ("the file", by_place)):
            labels = [path for _, path in rows]
            equal, sigma = equal_neighbours(labels)
            pairs = len(labels) - 1
            yield Row(
                name=f"path by order of {ordering}: neighbours",
                n=pairs,
                value=equal / pairs,
                chance=sum(n * (n - 1) for n in Counter(labels).values()) / (len(labels) * pairs),
                p=2 * normal_tail(abs(sigma)),
                note=f"{equal} of {pairs} neighbours have the same path, {sigma:+.1f} standard deviations from chance",
            )
            for path in paths:
                here = [place for place, label in enumerate(labels) if label == path]
                elsewhere = [place for place, label in enumerate(labels) if label != path]
                area, error, n = separation([(elsewhere, here)])
                yield Row(
                    name=f"path {path} by order of {ordering}: first to last",
                    n=n,
                    value=area,
                    low=max(0.0, area - 1.96 * error),
                    high=min(1.0, area + 1.96 * error),
                    chance=0.5,
                    p=2 * normal_tail(abs(area - 0.5) / error) if error else 1.0,
                    note=f"a case of this path comes before another in {area:.3f} of all pairs",
                )

    def _judge(self, row: Row, tests: int) -> Row:
        p = min(1.0, (row.p or 0.0) * tests)
        return msgspec.structs.replace(row, p=p, status=self.context.judge(p))


def list_names(case: Case) -> Iterator[tuple[str, str]]:
    """All names in a case that reach a model or a shared file, each after the kind of thing it names."""
    yield "case id", case.id
    yield "study", case.study
    if case.patient:
        yield "patient", case.patient
    yield from (("image", image.key) for image in case.images)
    yield from (("region", region.name) for region in case.regions)
    for view in case.views:
        yield "view", view.id
        for panel in view.panels:
            if panel.caption:
                yield "caption", panel.caption
            yield from (("mark", mark.text) for mark in panel.marks if mark.text)
    for step in case.steps:
        yield from (("option", option.id) for option in step.options)


def _natural_sort_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts v10 after v9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in _PART.split(name) if part]

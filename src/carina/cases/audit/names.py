"""Gate: do names or their order tell what is right?

Two ways. A name may say it in words ("option_2_fake.png"). Or names are harmless and their order is not: the truth is
always the first region, the right option always has the lowest view id, cases of one path lie together in the file.
"""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from carina.cases.audit.chance import (
    alike_neighbours,
    at_least,
    at_most,
    expected,
    normal_tail,
    separation,
    wilson,
)
from carina.cases.audit.frame import Objections, judged
from carina.cases.audit.learning import hashed
from carina.cases.audit.record import Found, GateResult, Row, Status, gravest
from carina.cases.audit.steps import choices, task_of
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case

_TELLING: Final = """answer answers key keys keyed correct incorrect wrong fake true false truth gold positive negative
    pos neg optimal suboptimal distractor distractors deformed deformation undeformed revised unrevised shown
    lf rf rr"""
TELLING: Final = frozenset(_TELLING.split())
"""Words that no name may hold which reaches a model or a shared file. "right" is a side and no such word, and
"revision" is a stage that the published layout names its folders after."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PART: Final = re.compile(r"(\d+)")
_MOST_ROWS: Final = 50_000
"""Cases whose order is looked at; where there are more, those with the lowest hashes."""


class Names:
    """Words in names, and what the order of names predicts."""

    cost = 3.0

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._objections = Objections(thresholds.worst)
        self._n = 0
        self._rows: list[tuple[int, str, int, str]] = []
        """Of a sample of the cases: less their hash, id, place in the file, path."""
        self._hits: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._trials: defaultdict[str, defaultdict[int, Counter[float]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def see(self, case: Case) -> None:
        self._n += 1
        for kind, name in names(case):
            telling = sorted({word.lower() for word in _WORD.findall(name)} & TELLING)
            if telling:
                self._objections.add(
                    case.id, f"{kind} {name!r} holds the word {', '.join(map(repr, telling))}"
                )
        if case.path is not None:
            self._keep(case.id, case.path)
        self._see_roles(case)
        self._see_options(case)

    def _keep(self, case: str, path: str) -> None:
        row = (-hashed(case), case, self._n, path)
        if len(self._rows) < _MOST_ROWS:
            heapq.heappush(self._rows, row)
        else:
            heapq.heappushpop(self._rows, row)

    def _see_roles(self, case: Case) -> None:
        """Ranks of regions with a role, among the names in order and in the list."""
        known = {region.name for region in case.regions}
        roles = {f.about: f.text for f in case.facts if f.name == "role" and f.text and f.about in known}
        if len(known) < 2:
            return
        listed = [region.name for region in case.regions]
        for way, order in (("by name", sorted(listed, key=_natural)), ("in the list", listed)):
            for role, times in Counter(roles.values()).items():
                for rank, name in enumerate(order, start=1):
                    self._note(
                        f"region {role!r} {way}", rank, times / len(order), hit=roles.get(name) == role
                    )

    def _see_options(self, case: Case) -> None:
        """Ranks of right options among ids of pictures and marks; words for options are no names."""
        for step in case.steps:
            found = choices(step)
            if found is None:
                continue
            for kind in ("view", "mark"):
                labels = {o.id: getattr(o, kind) for o in step.options if getattr(o, kind) is not None}
                if len(labels) < 2:
                    continue
                share = len(set(step.key.options) & set(labels)) / len(labels)
                for way, order in (
                    (f"{kind}s", sorted(labels, key=lambda option: _natural(labels[option]))),
                    ("option ids", sorted(labels, key=_natural)),
                ):
                    for rank, option in enumerate(order, start=1):
                        hit = option in step.key.options
                        self._note(f"{task_of(step)} by order of {way}", rank, share, hit=hit)

    def _note(self, what: str, rank: int, share: float, *, hit: bool) -> None:
        self._trials[what][rank][share] += 1
        self._hits[what][rank] += hit

    def result(self) -> GateResult:
        orders = [*self._orders()]
        tests = sum(map(len, self._trials.values())) + len(orders)
        rows = [self._rank_row(what, tests) for what in sorted(self._trials)]
        rows += [self._judged(row, tests) for row in orders]
        statistics = gravest(*(row.status for row in rows))
        status: Status = "fail" if self._objections else statistics
        count = self._objections.records
        low, high = wilson(count, self._n)
        told = [Found(id=row.name, what=row.note) for row in rows if row.status in ("warn", "fail")]
        return GateResult(
            name="names",
            status=gravest(status, "pass") if self._n else "not applicable",
            n=self._n,
            count=count,
            rate=count / self._n if self._n else None,
            low=low if self._n else None,
            high=high if self._n else None,
            threshold="no telling word in a name; no order of names tells a role, a key or a path "
            f"(fail at {self._thresholds.fail_level:g}, warn at {self._thresholds.warn_level:g}, all orders together)",
            meaning="Neither names nor their order tell what is right."
            if status not in ("warn", "fail")
            else "Names or their order tell what is right to whoever sees them; name and order things by a hash.",
            rows=tuple(rows),
            worst=(*self._objections.worst, *told)[: self._thresholds.worst],
        )

    def _rank_row(self, what: str, tests: int) -> Row:
        rows = []
        for rank, trials in self._trials[what].items():
            hits, n, mean = self._hits[what][rank], sum(trials.values()), expected(trials)
            tail = at_least(hits, trials) if hits > mean else at_most(hits, trials)
            low, high = wilson(hits, n)
            note = f"number {rank} is it {hits} times in {n}, expected {mean:.1f}"
            rows.append(
                Row(
                    name=what, n=n, value=hits / n, low=low, high=high, chance=mean / n, p=2 * tail, note=note
                )
            )
        return self._judged(min(rows, key=lambda row: row.p or 0.0), tests)

    def _orders(self) -> Iterator[Row]:
        paths = sorted({path for *_, path in self._rows})
        if len(paths) < 2:
            return
        by_id = sorted((case, path) for _, case, _, path in self._rows)
        by_place = sorted((place, path) for *_, place, path in self._rows)
        for way, rows in (("case ids", by_id), ("the file", by_place)):
            labels = [path for _, path in rows]
            alike, sigma = alike_neighbours(labels)
            pairs = len(labels) - 1
            yield Row(
                name=f"path by order of {way}: neighbours",
                n=pairs,
                value=alike / pairs,
                chance=sum(n * (n - 1) for n in Counter(labels).values()) / (len(labels) * pairs),
                p=2 * normal_tail(abs(sigma)),
                note=f"{alike} of {pairs} neighbours are on the same path, {sigma:+.1f} deviations from chance",
            )
            for path in paths:
                here = [place for place, label in enumerate(labels) if label == path]
                there = [place for place, label in enumerate(labels) if label != path]
                area, error, n = separation([(there, here)])
                yield Row(
                    name=f"path {path} by order of {way}: first to last",
                    n=n,
                    value=area,
                    low=max(0.0, area - 1.96 * error),
                    high=min(1.0, area + 1.96 * error),
                    chance=0.5,
                    p=2 * normal_tail(abs(area - 0.5) / error) if error else 1.0,
                    note=f"a case of this path comes before another in {area:.3f} of all pairs",
                )

    def _judged(self, row: Row, tests: int) -> Row:
        p = min(1.0, (row.p or 0.0) * tests)
        status = judged(p, warn=self._thresholds.warn_level, fail=self._thresholds.fail_level)
        return Row(
            name=row.name,
            n=row.n,
            value=row.value,
            low=row.low,
            high=row.high,
            chance=row.chance,
            p=p,
            status=status,
            note=row.note,
        )


def names(case: Case) -> Iterator[tuple[str, str]]:
    """All names in a case that reach a model or a shared file, with what they name."""
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


def _natural(name: str) -> list[tuple[int, int, str]]:
    """As people sort: v10 after v9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in _PART.split(name) if part]

"""Questions in other words, by a served model: only the question proper, and only where its key is sure to hold.

What a model proposes goes through the checks of `same_key`; what does not pass leaves the question as it was, and is
counted by reason. Lead-ins, options and instructions stay to the letter. With the same cache the same cases come out.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec

from carina.cases import Case, Origin, Step
from carina.models.served import AnswerCache, Prompt, Reply, Sampling, ask
from carina.store.seeding import rng
from carina.trek.language import capitalised
from carina.trek.paraphrase.same_key import why_not
from carina.trek.wording import load_wording

STYLES: Final = (
    "as a radiologist would put it to a colleague",
    "as a teacher would put it to a student at the light box",
    "plainly and without any flourish",
    "as an draft would word it on paper",
)
"""Drawn for each question, so that one model does not put one tone on a whole set."""
_SYSTEM: Final = """\
You reword questions about chest radiographs. Answer with the reworded question alone: one line, no quotation marks,
no comment, no answer.
Keep the meaning exactly. Keep every phrase listed under "keep" letter by letter. Keep every number, every negation
and every medical term; add none. Do not hint at the answer. Do not say how long or in which form to answer unless
the question does. About the same length as the question."""
_SAMPLING: Final = Sampling(max_tokens=512)

Core = Callable[[Step], str | None]


@dataclass
class ParaphraseCounts:
    """What became of the questions of a set."""

    reworded: int = 0
    left: int = 0
    """Not tried: not drawn, not worded by rule, or without a core to reword."""
    refused: Counter[str] = field(default_factory=Counter)
    """Tried, and kept as they were: why."""


@dataclass
class _Plan:
    """A case with the cores that go to the model, by step."""

    case: Case
    cores: dict[str, str]
    replies: list[Reply] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.replies) == len(self.cores)


def paraphrase(
    model: str,
    cases: Iterable[Case],
    *,
    counts: ParaphraseCounts,
    core_of: Core | None = None,
    cache: AnswerCache | None = None,
    connections: int = 8,
    base_url: str | None = None,
    seed: int = 0,
    share: float = 1.0,
) -> Iterator[Case]:
    """The cases in their order, a share of their questions reworded by a model; counts what was done."""
    core_of = core_of or core_by_template
    plans: deque[_Plan] = deque()

    def prompts() -> Iterator[Prompt]:
        for case in cases:
            plan = _planned(case, core_of, seed=seed, share=share)
            plans.append(plan)
            counts.left += len(case.steps) - len(plan.cores)
            yield from (_prompt(case, case.step(step), core, seed) for step, core in plan.cores.items())

    def done() -> Iterator[Case]:
        while plans and plans[0].is_complete:
            yield _reworded(plans.popleft(), model, counts)

    replies = ask(
        model, prompts(), connections=connections, sampling=_SAMPLING, cache=cache, base_url=base_url
    )
    with closing(replies):
        for reply in replies:
            yield from done()
            plans[0].replies.append(reply)
    yield from done()


def core_by_template(step: Step) -> str | None:
    """The question proper of a step, put together again from its template; None where that is not what it says."""
    template = _templates().get(step.template or "")
    if template is None:
        return None
    try:
        core = capitalised(template.format_map({slot.name: slot.value for slot in step.slots}))
    except KeyError:
        return None
    return core if step.question.count(core) == 1 else None


@lru_cache(maxsize=1)
def _templates() -> dict[str, str]:
    """Texts of all templates by id; read once."""
    return {
        template.id: template.text for pool in load_wording().pools.values() for template in pool.questions
    }


def _planned(case: Case, core_of: Core, *, seed: int, share: float) -> _Plan:
    cores: dict[str, str] = {}
    for step in case.steps:
        if step.origin.method != "rule" or rng(seed, case.id, step.id, "paraphrase").random() >= share:
            continue
        core = core_of(step)
        if core is not None and step.question.count(core) == 1:
            cores[step.id] = core
    return _Plan(case, cores)


def _prompt(case: Case, step: Step, core: str, seed: int) -> Prompt:
    style = STYLES[int(rng(seed, case.id, step.id, "style").integers(len(STYLES)))]
    keep = [slot.value for slot in step.slots if slot.value.casefold() in core.casefold()]
    asked = {"style": style, "keep": keep, "question": core}
    return Prompt(system=_SYSTEM, user=msgspec.json.encode(asked).decode())


def _reworded(plan: _Plan, model: str, counts: ParaphraseCounts) -> Case:
    replies = dict(zip(plan.cores, plan.replies, strict=True))
    taken = {step.question.casefold() for step in plan.case.steps}
    steps: list[Step] = []
    for step in plan.case.steps:
        if step.id not in replies:
            steps.append(step)
            continue
        core, reply = plan.cores[step.id], replies[step.id]
        words = _words(reply)
        question = step.question.replace(core, words) if words else ""
        reason = _no_words(reply) if words is None else why_not(step, core, words)
        if reason is None and question.casefold() in taken:
            reason = "asked twice"
        if reason is None:
            counts.reworded += 1
            taken.add(question.casefold())
            origin = Origin(method="llm", model=model, review="none")
            steps.append(msgspec.structs.replace(step, question=question, origin=origin))
        else:
            counts.refused[reason] += 1
            steps.append(step)
    return msgspec.structs.replace(plan.case, steps=tuple(steps))


def _words(reply: Reply) -> str | None:
    """The proposal without the quotation marks that models put around it."""
    if not reply.text or reply.stop != "stop":
        return None
    text = reply.text.strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "''", "“”", "‘’") and text.count(text[0]) <= 2:
        text = text[1:-1].strip()
    return text[:1].upper() + text[1:] or None


def _no_words(reply: Reply) -> str:
    if reply.error is not None:
        return "no reply"
    return "cut off" if reply.text else "empty"

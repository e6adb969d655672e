"""Rewording of questions by a served model: only the question proper, and only where its key stays the same.

Proposals of the model go through the checks of `same_key`. Where one fails, the question keeps its wording, and the
reason is counted. Lead-ins, options and instructions never change. The same cache gives the same cases.
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
from carina.trek.language import capitalise, load_language
from carina.trek.paraphrase.same_key import find_rejection
from carina.trek.wording import load_wording

STYLES: Final = (
    "as a radiologist would put it to a colleague",
    "as a teacher would put it to a student at the light box",
    "plainly and without any flourish",
    "as an draft would word it on paper",
)
"""Styles, one sampled for each question, so that a set does not have the tone of one model."""
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
    """Numbers of questions that were reworded, not tried, or kept for a reason."""

    reworded: int = 0
    left: int = 0
    """Not tried: not sampled, not made from a template, or without a core to reword."""
    refused: Counter[str] = field(default_factory=Counter)
    """Tried and not reworded, by reason."""


@dataclass
class _CasePlan:
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
    stay_local: bool = False,
    seed: int = 0,
    share: float = 1.0,
) -> Iterator[Case]:
    """The cases in their order, with a share of their questions reworded by a model; updates `counts`."""
    core_of = core_of or core_by_template
    plans: deque[_CasePlan] = deque()

    def prompts() -> Iterator[Prompt]:
        for case in cases:
            plan = _plan_case(case, core_of, seed=seed, share=share)
            plans.append(plan)
            counts.left += len(case.steps) - len(plan.cores)
            yield from (_make_prompt(case, case.step(step), core, seed) for step, core in plan.cores.items())

    def done() -> Iterator[Case]:
        while plans and plans[0].is_complete:
            yield _reword_case(plans.popleft(), model, counts)

    replies = ask(
        model,
        prompts(),
        connections=connections,
        sampling=_SAMPLING,
        cache=cache,
        base_url=base_url,
        stay_local=stay_local,
    )
    with closing(replies):
        for reply in replies:
            yield from done()
            plans[0].replies.append(reply)
    yield from done()


def core_by_template(step: Step) -> str | None:
    """The question proper of a step, filled again from its template; None where the question does not contain it."""
    template = _load_templates().get(step.template or "")
    if template is None:
        return None
    try:
        core = capitalise(load_language().fill(template, {slot.name: slot.value for slot in step.slots}))
    except KeyError:
        return None
    return core if step.question.count(core) == 1 else None


@lru_cache(maxsize=1)
def _load_templates() -> dict[str, str]:
    """Texts of all templates by id; read once."""
    return {
        template.id: template.text for pool in load_wording().pools.values() for template in pool.questions
    }


def _plan_case(case: Case, core_of: Core, *, seed: int, share: float) -> _CasePlan:
    cores: dict[str, str] = {}
    for step in case.steps:
        if step.origin.method != "rule" or rng(seed, case.id, step.id, "paraphrase").random() >= share:
            continue
        core = core_of(step)
        if core is not None and step.question.count(core) == 1:
            cores[step.id] = core
    return _CasePlan(case, cores)


def _make_prompt(case: Case, step: Step, core: str, seed: int) -> Prompt:
    style = STYLES[int(rng(seed, case.id, step.id, "style").integers(len(STYLES)))]
    keep = [slot.value for slot in step.slots if slot.value.casefold() in core.casefold()]
    asked = {"style": style, "keep": keep, "question": core}
    return Prompt(system=_SYSTEM, user=msgspec.json.encode(asked).decode())


def _reword_case(plan: _CasePlan, model: str, counts: ParaphraseCounts) -> Case:
    replies = dict(zip(plan.cores, plan.replies, strict=True))
    taken = {step.question.casefold() for step in plan.case.steps}
    steps: list[Step] = []
    for step in plan.case.steps:
        if step.id not in replies:
            steps.append(step)
            continue
        core, reply = plan.cores[step.id], replies[step.id]
        words = _clean_reply(reply)
        question = step.question.replace(core, words) if words else ""
        reason = _reason_without_text(reply) if words is None else find_rejection(step, core, words)
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


def _clean_reply(reply: Reply) -> str | None:
    """The proposal without the quotation marks that models put around it; None for an empty or incomplete reply."""
    if not reply.text or reply.stop != "stop":
        return None
    text = reply.text.strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "''", "“”", "‘’") and text.count(text[0]) <= 2:
        text = text[1:-1].strip()
    return text[:1].upper() + text[1:] or None


def _reason_without_text(reply: Reply) -> str:
    if reply.error is not None:
        return "no reply"
    return "cut off" if reply.text else "empty"

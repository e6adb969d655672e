"""The run of one case as a state machine: it hands out the next turn, takes the answer, and decides what follows.

It never talks to a model, so one walk serves every runner, the browser and the tests. The questions of a case lie on
the path of its truth, and all of them are asked, unless the policy stops at the first wrong stage.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from carina.cases import Benchmark, Case, Key, Step
from carina.cases.messages import Message, answer, escape_media, prompt_text
from carina.models import Reply
from carina.runs.log import Answered
from carina.runs.parse import parse, parse_chexpercept
from carina.runs.parse.normalise import make_storable, remove_reasoning
from carina.runs.prompts import (
    NO_ANSWER,
    OPERATIONS,
    describe_images,
    introduce_case,
    original_prompt,
    state_facts,
    system_prompt,
    write_hint,
    write_key_as_answer,
)
from carina.runs.records import Example, ParsedAnswer, Policy, Prompts, Scores, StepRow, Turn
from carina.runs.score import chance, score

LONGEST_IN_HISTORY: Final = 8_000
"""Characters of an answer that later turns show, from its end: a long answer would be sent again and again."""
LONGEST_KEPT: Final = 100_000
"""Characters of an answer that the table stores, half of them from its end."""
_DEFAULT_PROMPTS: Final = Prompts()
_GOOD_ENOUGH: Final = 0.5
"""Score from which free text, which is neither right nor wrong, counts as not failed."""


@dataclass(slots=True)
class _AnsweredStep:
    """A step that was answered, and how later turns show it."""

    step: Step
    question: Message
    answer: str
    failed: bool
    is_exact: bool
    """Whether the answer is the key, so that there is nothing to replace."""
    is_corrected: bool = False


class Walk:
    """One case under one policy. Ask for `turn`, give the reply to `take`, until there is no turn any more.

    Args:
        case: The case, with its answer keys.
        policy: What later turns show of earlier answers, and whose rules read them.
        prompts: What the user decides about the prompts; None for those of the protocol.
    """

    def __init__(self, case: Case, policy: Policy, prompts: Prompts | None = None) -> None:
        self.case = case
        self.policy = policy
        prompts = prompts or _DEFAULT_PROMPTS
        self.system = system_prompt(case.protocol, prompts, policy.profile)
        self.examples = tuple(one for one in prompts.examples if one.protocol == case.protocol)
        self._image_order = prompts.image_order
        self._is_original = policy.profile == "chexpercept" and case.protocol == "percept"
        """Whether texts and history are put together as in the published runner of CheXpercept."""
        self._past: list[_AnsweredStep] = []
        self._next = 0
        """Number of the next step; the number of steps where none is left."""
        self._rows: dict[int, StepRow] = {}
        self._wrong_stage: int | None = None
        self._has_failed = False
        self._turn: Turn | None = None
        self._hints: tuple[str, ...] = ()

    @property
    def turn(self) -> Turn | None:
        """The next question; None when the case is over."""
        if self._turn is None and not self.over:
            self._turn = self._make_turn()
        return self._turn

    @property
    def over(self) -> bool:
        """Whether nothing is left to ask."""
        return self._has_failed or self._is_stopped or self._next >= len(self.case.steps)

    @property
    def complete(self) -> bool:
        """Whether the case is over and no step failed with an error."""
        return self.over and not any(row.state == "incomplete" for row in self._rows.values())

    def take(self, reply: Reply, *, seconds: float | None = None) -> StepRow:
        """Parse and score the answer to the current turn; an error is never an answer."""
        turn = self.turn
        if turn is None:
            raise ValueError(f"case {self.case.id}: the case is over")
        step = self.case.steps[self._next]
        common = self._question_row(turn, reply, seconds)
        if reply.text is None:
            row = msgspec.structs.replace(common, state="incomplete", error=reply.error or "no answer")
            # Without a history every question is independent.
            self._has_failed = self.policy.history != "none"
        else:
            raw = make_storable(reply.text)
            parsed = self._parse(step, raw, reply.stop)
            scores = score(self.case, step, parsed, raw)
            row = _add_scores(common, step, raw, parsed, scores)
            self._remember(
                step, turn.messages[-1], raw if self._is_original else remove_reasoning(raw).text, scores
            )
        self._rows[self._next] = row
        self._go_to(0)
        return row

    def _go_to(self, number: int) -> None:
        """Go to the next step from this one on that has no row."""
        while number in self._rows:
            number += 1
        self._next, self._turn = number, None

    def replay(self, row: StepRow, text: str | None) -> None:
        """Take the reply that an earlier call got for a step.

        Steps are replayed in order, unless there is no history: then every question is independent, and one that failed
        is asked last.
        """
        if self.policy.history == "none":
            self._go_to(row.number)
        reply = Reply(
            text=text,
            stop=row.stop or "",
            error=row.error,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
        )
        self.take(reply, seconds=row.seconds)

    def rows(self) -> Iterator[StepRow]:
        """All steps of the case, also those that were not asked."""
        for number, step in enumerate(self.case.steps):
            row = self._rows.get(number)
            if row is None:
                state = "incomplete" if self._has_failed or not self.over else "not_reached"
                row = msgspec.structs.replace(self._empty_row(number, step), state=state)
            yield row

    # ---- questions -------------------------------------------------------------------------------------------------

    def _make_turn(self) -> Turn:
        step = self.case.steps[self._next]
        history = self.policy.history
        past = [] if history == "none" else self._past
        self._hints = self._correct(step) if history in ("gold", "hint") else ()
        seen = {view for one in past for view in one.question.shows}
        wanted = {*step.shows, *step.uses} - seen
        shows = tuple(view.id for view in self.case.views if view.id in wanted)
        question = original_prompt(step) if self._is_original else prompt_text(step)
        intro = [introduce_case()] if self.examples and not past else []
        texts = [*intro, *self._hints, *self._image_descriptions(step, shows), question]
        text = ("\n\n" if self._is_original else "\n").join(texts)
        messages: list[Message] = []
        for one in past:
            messages += [one.question, Message(role="assistant", step=one.step.id, text=one.answer)]
        messages.append(Message(role="user", step=step.id, text=text, shows=shows))
        return Turn(
            case=self.case.id,
            step=without_key(step),
            system=self.system,
            messages=tuple(messages),
            examples=self.examples,
            image_order=self._image_order,
        )

    def _image_descriptions(self, step: Step, shows: tuple[str, ...]) -> list[str]:
        """State which images belong to which study, where both come together and the question is about one of them."""
        roles = {image.key: image.role for image in self.case.images}
        image_roles = [roles[view.panels[0].image] for view in self.case.views if view.id in shows]
        reference = image_roles.count("reference")
        both = 0 < reference < len(image_roles) and set(shows) != set(step.shows)
        return [describe_images(len(image_roles) - reference, reference)] if both else []

    def _correct(self, step: Step) -> tuple[str, ...]:
        """Replace the wrong answers that are to be corrected before this step, or state their truth."""
        wrong = []
        for one in self._past:
            due = self.policy.scope == "step" or one.step.stage < step.stage or one.step.id in step.depends_on
            if one.is_corrected or not due:
                continue
            if self.policy.history == "gold" and not one.is_exact:
                one.answer = write_key_as_answer(self.case, one.step, self.policy.profile)
                one.is_corrected = True
            elif self.policy.history == "hint" and one.failed:
                wrong.append(one.step)
                one.is_corrected = True
        if self._is_original and wrong:
            return (state_facts(self._with_other_operation(wrong)),)
        return tuple(write_hint(one.question, answer(self.case, one)) for one in wrong)

    def _with_other_operation(self, wrong: Sequence[Step]) -> list[Step]:
        """The steps, and where one of two steps about points is among them, the other one too.

        The published setting "explicit" states expansion and contraction together, whichever was wrong.
        """
        ids = {step.id for step in wrong}
        both = {one.step.id for one in self._past if one.step.task in OPERATIONS}
        ids |= both if ids & both else set()
        return [one.step for one in self._past if one.step.id in ids]

    # ---- answers ---------------------------------------------------------------------------------------------------

    def _parse(self, step: Step, raw: str, stop: str) -> ParsedAnswer:
        bare = without_key(step)
        if self.policy.profile == "chexpercept" and step.format == "choice":
            return parse_chexpercept(bare, raw)
        return parse(bare, raw, stop=stop or "stop", images=self._sizes(step))

    def _sizes(self, step: Step) -> dict[str, tuple[int, int]]:
        """Width and height of the images that a step is about, by key; those of all where it is about none."""
        shown = {panel.image for view in self.case.views if view.id in step.uses for panel in view.panels}
        images = [image for image in self.case.images if image.key in shown] or self.case.images
        return {image.key: (image.width, image.height) for image in images}

    def _remember(self, step: Step, question: Message, text: str, scores: Scores) -> None:
        """Keep what later turns show of an answer: its text without reasoning, and nothing that could mark an image."""
        shown = (
            escape_media(text) if self._is_original else escape_media(text)[-LONGEST_IN_HISTORY:]
        ) or NO_ANSWER
        right = scores.correct
        failed = not right if right is not None else scores.score < _GOOD_ENOUGH
        # Free text is as good as the answer key only where it says the same.
        is_exact = right and step.format != "boxes" if right is not None else scores.score >= 1
        self._past.append(_AnsweredStep(step, question, shown, failed, bool(is_exact)))
        if scores.correct is False and self._wrong_stage is None:
            self._wrong_stage = step.stage

    @property
    def _is_stopped(self) -> bool:
        """Whether a wrong stage is over, under the policy that stops there."""
        if self.policy.on_wrong == "continue" or self._wrong_stage is None:
            return False
        return self._next >= len(self.case.steps) or self.case.steps[self._next].stage != self._wrong_stage

    # ---- rows -------------------------------------------------------------------------------------------------------

    def _empty_row(self, number: int, step: Step) -> StepRow:
        case = self.case
        return StepRow(
            case=case.id,
            study=case.study,
            patient=case.patient,
            protocol=case.protocol,
            source=case.source,
            target=case.target,
            path=case.path,
            number=number,
            step=step.id,
            stage=step.stage,
            task=step.task,
            format=step.format,
            multiple=step.multiple,
            options=len(step.options),
            state="answered",
            gold=answer(case, step),
            gold_options=step.key.options,
            gold_label=step.key.label,
            chance=chance(step),
        )

    def _question_row(self, turn: Turn, reply: Reply, seconds: float | None) -> StepRow:
        last = turn.messages[-1]
        return msgspec.structs.replace(
            self._empty_row(self._next, self.case.steps[self._next]),
            prompt=last.text,
            hint="\n".join(self._hints) or None,
            seen_sha256=_sha256(turn),
            views=last.shows,
            stop=reply.stop or None,
            seconds=seconds,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            images=sum(len(message.shows) for message in turn.messages) + count_example_images(turn.examples),
        )


def count_example_images(examples: Sequence[Example]) -> int:
    """Number of images in examples."""
    return sum(len(message.shows) for one in examples for message in one.messages)


def without_key(step: Step) -> Step:
    """A step as it may be handed to a model."""
    return msgspec.structs.replace(step, key=Key(), facts=(), evidence=(), reached_by=(), depends_on=())


def _add_scores(row: StepRow, step: Step, raw: str, parsed: ParsedAnswer, scores: Scores) -> StepRow:
    kinds = {option.id: kind for option, kind in zip(step.options, step.key.kinds, strict=False)}
    wrong = [option for option in parsed.options if option not in step.key.options]
    return msgspec.structs.replace(
        row,
        raw=_shorten(raw),
        status=parsed.status,
        answer=parsed.options,
        label=parsed.label,
        boxes=parsed.boxes,
        text=None if parsed.text is None else _shorten(parsed.text),
        kinds=tuple(kinds[option] for option in wrong if option in kinds),
        correct=scores.correct,
        score=scores.score,
        overlap=scores.overlap,
        f1=scores.f1,
        iou=scores.iou,
        rouge=scores.rouge,
        entity_f1=scores.entity_f1,
        attribute_f1=scores.attribute_f1,
        obeyed=scores.obeyed,
    )


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_KEPT:
        return text
    half = LONGEST_KEPT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _sha256(turn: Turn) -> str:
    content: list[object] = [turn.system, turn.messages]
    if turn.examples:
        content.append(turn.examples)
    if turn.image_order != "before":
        content.append(turn.image_order)
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


# ---- resuming -------------------------------------------------------------------------------------------------------


def resume_walks(
    bench: Benchmark, ids: Sequence[str], answered: Answered, policy: Policy, prompts: Prompts | None = None
) -> Iterator[Walk]:
    """The walks of some cases, each at the first question without an answer."""
    for case in bench.pick(ids):
        walk = Walk(case, policy, prompts)
        resume_walk(walk, answered)
        yield walk


def resume_walk(walk: Walk, answered: Answered, *, failures: bool = False) -> None:
    """Replay the answers of earlier calls; with `failures` also the errors, for the table of a run."""
    entries = answered.get(walk.case.id, {})
    for number in range(len(walk.case.steps)):
        if walk.over:
            return
        entry = entries.get(number)
        failed = entry is None or entry.row.state != "answered"
        if entry is not None and (failures or not failed):
            walk.replay(entry.row, None if failed else entry.reply)
        elif walk.policy.history != "none":
            return

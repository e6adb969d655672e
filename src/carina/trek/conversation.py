"""Make one conversation from a study and its neighbours in time."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from carina.cases import Case, CaseView, Context, Panel, Step, case_image
from carina.cases.facts import BY_PROGRAM
from carina.cases.model import Score
from carina.studies.assessment import is_stated_by_program
from carina.studies.model import Device, Finding, Study
from carina.trek.changes import Change
from carina.trek.facts import ATTRIBUTES, NotAskedFact, StudyTime, TrekCaseFacts, is_about_thing
from carina.trek.interned import make_slot
from carina.trek.language import Language
from carina.trek.options import TrekOptions
from carina.trek.phrasing import phrase_turn
from carina.trek.sampling import Sampler
from carina.trek.stages.attributes import ask_about_regions, ask_about_zone, ask_attributes
from carina.trek.stages.boxes import ask_for_findings, ask_for_regions
from carina.trek.stages.comparison import ask_comparison, find_comparable_changes, leave_out_comparison
from carina.trek.stages.expected_course import ask_expected_course
from carina.trek.stages.findings import ask_findings
from carina.trek.stages.image_quality import ask_image_quality
from carina.trek.stages.recommendations import ask_recommendations
from carina.trek.stages.relations import ask_relations
from carina.trek.stages.report import ask_report
from carina.trek.subject import Subject
from carina.trek.survey import Survey
from carina.trek.turn import ConversationDraft, Turn

_SCORES: dict[str, Score] = {
    "open": "text",
    "report": "text",
    "yes_no": "exact",
    "choice": "exact",
    "boxes": "boxes",
}


_STAGE = attrgetter("stage")


def make_conversation(
    subject: Subject,
    reference: Subject | None,
    later: Subject | None,
    *,
    survey: Survey,
    words: Language,
    options: TrekOptions,
) -> Case:
    """The conversation about a study, with its neighbours in time; a pure function of its arguments."""
    changes = find_comparable_changes(reference, subject)
    draft = ConversationDraft(
        subject=subject,
        reference=None if changes is None else reference,
        later=later,
        sampler=Sampler(options.seed, "trek", subject.study.id),
        words=words,
        survey=survey,
        options=options,
    )
    if changes is None and reference is not None:
        leave_out_comparison(draft, reference)
    _ask_all(draft, changes)
    turns = _order_at_random(draft) if draft.sampler.chance(options.shuffled) else _order_by_stage(draft)
    # With few turns, the random order may be the order of the stages.
    shuffled = any(one.stage > other.stage for one, other in pairwise(turns))
    return _make_case(draft, turns, shuffled=shuffled)


def _ask_all(draft: ConversationDraft, changes: list[Change] | None) -> None:
    """Ask the questions of all eight stages, as far as the study supports them."""
    ask_image_quality(draft)
    ask_findings(draft)
    ask_about_zone(draft)
    ask_attributes(draft)
    ask_for_findings(draft)
    ask_about_regions(draft)
    ask_relations(draft)
    if changes is not None:
        ask_comparison(draft, changes)
    ask_expected_course(draft)
    ask_recommendations(draft)
    ask_report(draft)
    turns = draft.turns
    boxes = [turn.format for turn in turns].count("boxes")
    wanted = draft.quotas.box_share * (len(turns) - boxes)
    ask_for_regions(draft, max(0, draft.sampler.round_randomly(wanted) - boxes))


# ---- order ----------------------------------------------------------------------------------------------------------


def _order_by_stage(draft: ConversationDraft) -> list[Turn]:
    """Turns by stage; boxes of anatomy, which reveal nothing about findings, come anywhere in stage 3."""
    anywhere = [turn for turn in draft.turns if turn.task == "region box"]
    ordered = [turn for turn in draft.turns if turn.task != "region box"]
    ordered.sort(key=_STAGE)
    first, last = bisect_left(ordered, 3, key=_STAGE), bisect_right(ordered, 3, key=_STAGE)
    for turn in anywhere:
        ordered.insert(first + draft.sampler.below(last - first + 1), turn)
        last += 1
    return ordered


def _order_at_random(draft: ConversationDraft) -> list[Turn]:
    """Turns in random order, each after the turns that it depends on or whose keys it reveals; the report is last."""
    _add_order_constraints(draft.turns)
    waiting = draft.sampler.shuffle(draft.turns)
    placed: list[Turn] = []
    done: set[int] = set()
    while waiting:
        ready = next(t for t in waiting if all(id(before) in done for before in (*t.depends, *t.after)))
        waiting.remove(ready)
        placed.append(ready)
        done.add(id(ready))
    return placed


_REPORT = 8
_ANY = ("any abnormality", "any device")
_REVEALS_NOTHING = ("view", "region box")
_ONE_ATTRIBUTE = (*ATTRIBUTES, "measure")
"""Questions about one attribute; questions that reveal several attributes come after them."""
_REVEALS_MORE = ("region content", "change")
"""Closed questions whose wording or answer reveals more than their own key."""


def _add_order_constraints(turns: Sequence[Turn]) -> None:
    """Add to each turn the turns that must come before it, because it would reveal their keys.

    An open turn reveals the keys about its own findings; one about the whole study reveals everything up to its stage.
    Every turn that names a finding as present reveals that something is present.
    """
    closed = [turn for turn in turns if turn.format in ("yes_no", "choice")]
    keyed = [turn for turn in turns if turn in closed or turn.task in _ONE_ATTRIBUTE]
    first = [turn for turn in closed if turn.task in _ANY]
    for turn in turns:
        if turn.task in _REVEALS_NOTHING or turn.task in _ANY:
            continue
        if turn.task == "quality":
            turn.after = [other for other in closed if other.task == "view"]
            continue
        turn.after = [*turn.after, *first]
        if turn in closed and turn.task not in _REVEALS_MORE:
            continue
        if turn.stage == _REPORT:
            turn.after.extend(other for other in turns if other.stage < _REPORT)
            continue
        named = _named_things(turn)
        if turn.task == "location":
            turn.after.extend(
                other for other in turns if other.task == "side" and named & _named_things(other)
            )
        if turn.task == "comparison":
            turn.after.extend(other for other in turns if other.task == "trend")
        told = closed if turn in closed or turn.task in _ONE_ATTRIBUTE else keyed
        turn.after.extend(
            other
            for other in told
            if other.stage <= turn.stage
            # Two such turns cannot each come after the other.
            and not (turn.task in _REVEALS_MORE and other.task in _REVEALS_MORE)
            and (not named or named & _named_things(other))
        )


def _named_things(turn: Turn) -> set[str]:
    """Findings and devices that a turn is about; none where it is about the study or a region of it."""
    return {row.text or "" for row in turn.facts if is_about_thing(row)}


# ---- the case -------------------------------------------------------------------------------------------------------


def _make_case(draft: ConversationDraft, turns: Sequence[Turn], *, shuffled: bool) -> Case:
    subject, reference = draft.subject, draft.reference
    study = subject.study
    others = () if reference is None else reference.images
    images = (
        *(case_image(image) for image in subject.images),
        *(case_image(image, role="reference") for image in others),
    )
    later = draft.later
    if later is not None and not any(turn.stage == 6 for turn in turns):
        later = None
    return Case(
        id=f"trek-{study.id}",
        protocol="trek",
        study=study.id,
        patient=study.patient,
        source=study.source,
        split=study.split,
        order="shuffled" if shuffled else "staged",
        reference_study=None if reference is None else reference.study.id,
        later_study=None if later is None else later.study.id,
        context=Context(indication=subject.indication or None, age=study.age, sex=study.sex),
        images=images,
        views=tuple(
            CaseView(id=f"v{number}", panels=(Panel(image=image.key),))
            for number, image in enumerate(images, start=1)
        ),
        steps=_make_steps(draft, turns),
        facts=TrekCaseFacts(
            times={
                role: _study_time(other.study)
                for role, other in (("current", subject), ("reference", reference), ("later", later))
                if other is not None
            },
            drawn_by=_find_drawn_by_program(study, turns),
            stated_by={
                name: BY_PROGRAM for name in sorted(_list_names(turns)) if is_stated_by_program(study, name)
            },
            not_asked=tuple(
                NotAskedFact(task, reason, float(number))
                for (task, reason), number in sorted(draft.not_asked.items())
            ),
            looked_for={kind: _name_scope(names) for kind, names in subject.looked_for.items()},
        ).rows(),
    )


def _name_scope(names: frozenset[str] | None) -> str:
    return "every" if names is None else "listed" if names else "none"


def _find_drawn_by_program(study: Study, turns: Sequence[Turn]) -> dict[str, str]:
    """Findings and devices that are asked about and that only programs have drawn, by name."""
    people: dict[str, bool] = {}
    things: list[Finding | Device] = [*study.findings, *study.devices]
    for thing in things:
        if thing.annotations:
            is_by_person = not all(annotation.automatic for annotation in thing.annotations)
            people[thing.name] = people.get(thing.name, False) or is_by_person
    names = _list_names(turns)
    return {name: BY_PROGRAM for name in sorted(people) if name in names and not people[name]}


def _list_names(turns: Sequence[Turn]) -> set[str]:
    """Names of the findings and devices that are asked about."""
    return {row.text for turn in turns for row in turn.facts if is_about_thing(row) and row.text}


def _study_time(study: Study) -> StudyTime:
    return StudyTime(
        order=None if study.order is None else float(study.order),
        date=None if study.date is None else study.date.isoformat(),
    )


def _make_steps(draft: ConversationDraft, turns: Sequence[Turn]) -> tuple[Step, ...]:
    sampler, common = draft.sampler, draft.words.wording.common
    current = tuple([f"v{number}" for number in range(1, len(draft.subject.images) + 1)])
    earlier: tuple[str, ...] = ()
    if draft.reference is not None:
        first = len(current) + 1
        earlier = tuple([f"v{number}" for number in range(first, first + len(draft.reference.images))])
    told = _pick_indication_turn(draft, turns)
    for number, turn in enumerate(turns, start=1):
        turn.number = number
    frame = draft.options.frame
    shown: dict[tuple[int, ...] | None, tuple[str, ...]] = {None: current}
    compared = False
    steps: list[Step] = []
    for turn in turns:
        phrased = phrase_turn(turn, sampler, common, frame)
        text = phrased.text
        names, values = turn.template.slots, turn.slots
        rare: dict[str, Any] = {}
        if phrased.options:
            rare = {"options": phrased.options, "multiple": turn.multiple}
        if turn.number == 1 or (turn.compares and not compared):
            entering: list[str] = []
            lead_ins: list[str] = []
            if turn.number == 1:
                entering += current
                lead_ins.append(_pick_lead_in(draft, "current", draft.subject))
            if turn.compares and draft.reference is not None:
                compared = True
                entering += earlier
                lead_ins.append(_pick_lead_in(draft, "reference", draft.reference))
            rare["shows"] = tuple(entering)
            text = " ".join([*lead_ins, text])
        if turn is told:
            rare["context"] = _pick_indication(draft)
        used = shown.get(turn.images)
        if used is None:
            used = shown[turn.images] = tuple([current[place] for place in turn.images or ()])
        # Fields that few steps have are added afterwards: a call with more than fifteen keyword arguments takes five
        # times as long, because Python then builds a dictionary.
        step = Step(
            id=f"t{turn.number}",
            stage=turn.stage,
            task=turn.task,
            format=turn.format,
            question=text,
            uses=(*used, *earlier) if turn.compares else used,
            score="set" if turn.multiple else _SCORES[turn.format],
            depends_on=_step_ids(turn.depends) if turn.depends else (),
            restates=turn.restates,
            constraints=phrased.constraints,
            template=turn.template.id,
            slots=tuple(map(make_slot, names, map(values.__getitem__, names))) if names else (),
            evidence=turn.evidence,
            key=phrased.key,
            facts=tuple(turn.facts),
        )
        steps.append(replace(step, **rare) if rare else step)
    return tuple(steps)


def _step_ids(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Ids of the steps, in the order of the conversation."""
    if len(turns) == 1:
        return (f"t{turns[0].number}",)
    return tuple([f"t{number}" for number in sorted([turn.number for turn in turns])])


def _pick_lead_in(draft: ConversationDraft, role: str, subject: Subject) -> str:
    """A sentence that introduces the images of a study; only where all of them are shown may it say so."""
    pools = draft.words.wording.common["lead_in"][role]
    is_one = len(subject.images) == 1
    sentences = pools["one" if is_one else "several"]
    if len(subject.images) == len(subject.study.images):
        sentences = [*sentences, *pools["only_one" if is_one else "all_of_several"]]
    return str(draft.sampler.pick(sentences))


def _pick_indication_turn(draft: ConversationDraft, turns: Sequence[Turn]) -> Turn | None:
    """The turn of stage 2 or 3 that states the indication, if any; vignettes state it in their question."""
    if not draft.subject.indication or not draft.sampler.chance(draft.options.indication):
        return None
    fit = [turn for turn in turns if turn.stage in (2, 3) and turn.task != "vignette"]
    return draft.sampler.pick(fit) if fit else None


def _pick_indication(draft: ConversationDraft) -> str:
    said = str(draft.sampler.pick(draft.words.wording.common["indication"]))
    return said.format(indication=draft.subject.indication)

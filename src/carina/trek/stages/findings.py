"""Stage 2: whether anything is abnormal, which findings and devices are present, and which are absent.

The order ensures that no key reveals a later one: first whether anything is present, then findings by name, then
choices, then lists. At most one closed question names a finding.

Questions by name: the next answer is "yes" or "no" with equal probability, and the questions end with the last finding
that is present. So the next answer is as likely "yes" as "no", whatever was answered before; a fixed number of each
would reveal the last answers. Studies without findings get a few questions with the answer "no"
(`balance.NegativeQuestion`).

Some lists are a choice among whole lists. The lists differ in one name, which is chosen before anything is asked by
name and is in no other question: otherwise, earlier answers would reveal the right list without the image. All lists
have the same number of names, and each wrong list differs from the others as much as the right one does.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from carina.cases.model import Label
from carina.reports.conflicts import IN_CONFLICT
from carina.studies.assessment import Kind, explain_unknown
from carina.studies.lookalikes import is_clearly_absent
from carina.studies.vocabulary import Certainty
from carina.trek.balance import NO_OPENING, NegativeQuestion, Opening
from carina.trek.facts import FOR_BALANCE, is_about_thing, listed_row, negative_row, target_row, truth_row
from carina.trek.interned import cite
from carina.trek.subject import AbsentThing, Thing, cite_things
from carina.trek.turn import NOT_SHOWN, Choice, ConversationDraft, Turn

_ANY: Final[dict[Kind, str]] = {"finding": "any abnormality", "device": "any device"}
_PRESENCE_TASKS: Final[tuple[tuple[str, Kind], ...]] = (
    ("presence", "finding"),
    ("device presence", "device"),
)
_LABELS: Final[dict[Certainty, Label]] = {"present": "yes", "uncertain": "uncertain", "absent": "no"}
_SITED_SHARE = 0.2
"""Share of questions about a named finding that name a place too."""
_NONE_SHARE: Final = 0.4
"""Share of lists of three options or more that end with "none of these"."""
_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "abnormalities": ("finding",),
    "devices": ("device",),
    "abnormalities and devices": ("finding", "device"),
}
"""Kinds of things in each list."""
_LIST_CHOICE_SHARE: Final = 0.6
"""Share of studies that ask for a list as a choice, of those that can."""
_FINDING_LIST_SHARE: Final = 0.65
"""Share of these studies in which the choice is about findings and not about devices."""
_NOTHING_RATE: Final[dict[Kind, float]] = {"finding": 1.4, "device": 0.5}
"""Relative frequency of choices among lists in studies with nothing, compared with studies with something."""
_NOTHING_OFFERED: Final[dict[Kind, float]] = {"finding": 0.4, "device": 1.0}
"""Share of the choices with a single name that offer "nothing" too. Both are fitted on phantoms, so that "nothing" is
right about as often as any other option beside it."""


class ReservedName(msgspec.Struct, eq=False):
    """The name that a choice among lists is about; no other question asks about it."""

    kind: Kind
    thing: Thing | None
    """The thing that only the right list names; None where nothing of the kind is present."""
    wrong: list[AbsentThing]
    """Things that the wrong lists name instead."""
    nothing: bool
    """Whether "nothing" is one of the options: where it is right, and where the right list has a single name."""


def ask_findings(draft: ConversationDraft) -> None:
    """Ask about the presence of findings and devices: by name, as choices and as lists."""
    _ask_any(draft, "finding")
    _ask_any(draft, "device")
    reserved = _reserve_name(draft)
    taken = set() if reserved is None else {missing.name for missing in reserved.wrong}
    for_choices = _ask_by_name(draft, taken, reserved)
    _ask_choices(draft, for_choices, taken)
    _count_left_out(draft, reserved)
    if not _ask_others(draft, reserved):
        _ask_lists(draft, reserved)


# ---- anything at all ------------------------------------------------------------------------------------------------


def _ask_any(draft: ConversationDraft, kind: Kind) -> None:
    things = draft.subject.findings if kind == "finding" else draft.subject.devices
    task, certainty = _ANY[kind], draft.subject.anything[kind]
    if certainty is None:
        draft.is_complete(task, kind)
        return
    if kind == "finding" and certainty == "absent" and draft.subject.has_device:
        return  # an image with a device is not called normal
    if not draft.sampler.chance(_get_opening(draft, kind).any_probability[certainty != "absent"]):
        return
    label = _LABELS[certainty]
    turn = draft.add_question(2, task, "yes_no", facts=[target_row("study", task)])
    _set_answer(draft, turn, label, {})
    turn.evidence = cite_things(things)
    draft.answered_kinds.add(kind)


def _get_opening(draft: ConversationDraft, kind: Kind) -> Opening:
    return draft.survey.balance[kind].opening.get(draft.subject.stratum, NO_OPENING)


def _set_answer(draft: ConversationDraft, turn: Turn, label: Label, slots: dict[str, str]) -> None:
    """Add the key of a yes/no question; some of these questions give yes and no as options."""
    turn.label = label
    turn.answer = draft.fill_answer(turn, label, slots)
    if label != "uncertain" and draft.sampler.chance(0.1):
        turn.format = "choice"
        turn.label = None
        turn.choices = [Choice(word.capitalize(), right=word == label) for word in ("yes", "no")]


# ---- by name --------------------------------------------------------------------------------------------------------


def _ask_by_name(draft: ConversationDraft, taken: set[str], reserved: ReservedName | None) -> list[Thing]:
    """Ask yes/no questions by name; returns the findings and devices that remain for choices."""
    sampler, subject = draft.sampler, draft.subject
    _count_unasked(draft)
    left_for_choices: list[Thing] = []
    groups: tuple[tuple[Kind, list[Thing], list[AbsentThing]], ...] = (
        ("finding", subject.findings, subject.absent_findings),
        ("device", subject.devices, subject.absent_devices),
    )
    for kind, things, absent in groups:
        balanced, opening = draft.survey.balance[kind], _get_opening(draft, kind)
        named: list[Thing] = []
        held = reserved if reserved is not None and reserved.kind == kind else None
        there = [
            thing
            for thing in things
            if thing.is_present and thing.alone and (held is None or thing is not held.thing)
        ]
        # The number of positives is limited by the number of negatives that the study can supply.
        askable = sum(balanced.asked.get(thing.name, 0.0) > 0 for thing in there)
        negatives = sum(_negative_weights(draft, absent))
        enough = min(1.0, negatives / askable) if askable else 0.0
        for thing in there:
            if sampler.chance(draft.quotas.choices):
                left_for_choices.append(thing)
            elif sampler.chance(enough * balanced.asked.get(thing.name, 0.0)):
                named.append(thing)
        told = kind in draft.answered_kinds
        rest = [missing for missing in absent if missing.name not in taken]
        if named:
            _ask_chain(draft, sampler.shuffle(named), rest, taken, () if told else opening.negatives_first)
        elif askable and not negatives and not told:
            _ask_alone(draft, [thing for thing in there if thing not in left_for_choices], opening)
        elif not things and not told and held is None and (kind == "device" or not subject.has_device):
            for step in opening.negatives_first:
                if not sampler.chance(step.continues) or not _ask_negative(draft, rest, taken):
                    break
        for thing in sampler.shuffle([t for t in things if t.certainty == "uncertain" and t.alone]):
            if balanced.uncertain >= 1 or sampler.chance(balanced.uncertain):
                _ask_named(draft, thing)
    return left_for_choices


def _count_unasked(draft: ConversationDraft) -> None:
    """Count names of which nothing is known, or of which drawing and report disagree."""
    subject = draft.subject
    for task, kind in _PRESENCE_TASKS:
        for reason, number in (
            (explain_unknown(subject.study, kind), subject.unknown[kind]),
            (IN_CONFLICT, subject.disputed[kind]),
            (NOT_SHOWN, subject.not_shown[kind]),
        ):
            if number:
                draft.leave_out(task, reason, number)


def _ask_alone(draft: ConversationDraft, there: list[Thing], opening: Opening) -> None:
    """Ask about one thing that is present, in a study of which nothing is known to be absent."""
    asked = draft.survey.balance[there[0].kind].asked if there else {}
    possible = [thing for thing in there if asked.get(thing.name, 0.0) > 0]
    if possible and draft.sampler.chance(opening.alone):
        thing = draft.sampler.pick(possible)
        if draft.sampler.chance(asked[thing.name]):
            _ask_named(draft, thing)


def _ask_chain(
    draft: ConversationDraft,
    positives: list[Thing],
    rest: list[AbsentThing],
    taken: set[str],
    negatives_first: Sequence[NegativeQuestion],
) -> None:
    """Ask positives and negatives in random order, up to the last positive.

    Until the first "yes", the study may be one without findings, so the first "yes" has a higher probability.
    """
    asked, any_yes = 0, False
    while positives and asked < draft.quotas.named:
        sooner = negatives_first[asked].yes if not any_yes and asked < len(negatives_first) else 0.5
        if draft.sampler.chance(sooner):
            _ask_named(draft, positives.pop())
            any_yes = True
        elif not _ask_negative(draft, rest, taken):
            return
        asked += 1


def _ask_negative(draft: ConversationDraft, rest: list[AbsentThing], taken: set[str]) -> bool:
    """Ask about something absent and remove it from the rest; False where nothing is left."""
    missing = _sample_negative(draft, rest)
    if missing is None:
        return False
    rest.remove(missing)
    taken.add(missing.name)
    _ask_absent(draft, missing)
    return True


def _sample_negative(draft: ConversationDraft, absent: list[AbsentThing]) -> AbsentThing | None:
    """Something absent, sampled by the weights that balance the set; None where nothing can be asked about."""
    weights = _negative_weights(draft, absent)
    return draft.sampler.pick_weighted(absent, weights) if absent and sum(weights) > 0 else None


def _negative_weights(draft: ConversationDraft, absent: list[AbsentThing]) -> list[float]:
    negative = draft.survey.balance[absent[0].kind].negative if absent else {}
    return [negative.get(missing.name, 0.0) * missing.plausibility for missing in absent]


def _ask_named(draft: ConversationDraft, thing: Thing) -> None:
    sampler = draft.sampler
    task = "presence" if thing.kind == "finding" else "device presence"
    facts = [thing.target, thing.truth]
    name = draft.words.name(thing.name)
    slots = {"finding": name.bare, "a_finding": name.a}
    sited = (
        thing.kind == "finding"
        and thing.is_present
        and "location" in thing.values
        and sampler.chance(_SITED_SHARE)
    )
    if sited:
        slots["at"] = thing.values["location"]
        # The answer reveals the location, so no later question asks for it.
        draft.answered_places.add(thing.id)
    turn = draft.add_question(2, task, "yes_no/sited" if sited else "yes_no", slots, facts=facts)
    _set_answer(draft, turn, "yes" if thing.is_present else "uncertain", slots)
    turn.evidence = thing.marks
    draft.presence[thing.id] = turn


def _ask_absent(draft: ConversationDraft, missing: AbsentThing) -> None:
    task = "presence" if missing.kind == "finding" else "device presence"
    facts = [
        target_row(missing.kind, missing.name),
        truth_row(missing.id, "absent"),
        negative_row(missing.origin),
    ]
    name = draft.words.name(missing.name)
    slots = {"finding": name.bare, "a_finding": name.a}
    places = draft.survey.wrong.get((missing.name, "location"))
    sited = missing.kind == "finding" and places is not None and draft.sampler.chance(_SITED_SHARE)
    if sited and places is not None:
        slots["at"] = draft.sampler.pick_weighted(places.values, places.shares)
    turn = draft.add_question(2, task, "yes_no/sited" if sited else "yes_no", slots, facts=facts)
    _set_answer(draft, turn, "no", slots)
    turn.evidence = cite("current", missing.evidence)


def _count_left_out(draft: ConversationDraft, reserved: ReservedName | None) -> None:
    """Note how many things that the study records are not asked about by name, nor offered in a choice."""
    subject = draft.subject
    asked = {row.text for turn in draft.turns for row in turn.facts if is_about_thing(row)}
    if reserved is not None:
        asked |= {missing.name for missing in reserved.wrong}
        asked |= set() if reserved.thing is None else {reserved.thing.name}
    groups = ((subject.findings, subject.absent_findings), (subject.devices, subject.absent_devices))
    for (task, _), (things, absent) in zip(_PRESENCE_TASKS, groups, strict=True):
        names = [thing.name for thing in things if thing.alone]
        # What is absent only because it was looked for is not counted: that is most names of the set.
        names += [missing.name for missing in absent if missing.id]
        number = sum(name not in asked for name in names)
        if number:
            draft.leave_out(task, FOR_BALANCE, number)


# ---- among options --------------------------------------------------------------------------------------------------


def _ask_choices(draft: ConversationDraft, things: list[Thing], taken: set[str]) -> None:
    """Ask which of several names is present: findings that were not asked about by name, among absent ones."""
    sampler, subject = draft.sampler, draft.subject
    for kind, absent in (("finding", subject.absent_findings), ("device", subject.absent_devices)):
        right = sampler.shuffle([thing for thing in things if thing.kind == kind])
        if not right:
            continue
        rest = sampler.shuffle([missing for missing in absent if missing.name not in taken])
        if len(right) > 1:
            _ask_several(draft, right, rest)
        else:
            _ask_one(draft, right[0], rest)


def _ask_several(draft: ConversationDraft, things: list[Thing], rest: list[AbsentThing]) -> None:
    """Ask a choice with any number of right options. Each name is offered as often wrong as right."""
    sampler, common = draft.sampler, draft.survey.balance[things[0].kind].frequency_among_several
    right = [
        thing for thing in things if sampler.chance(_balancing_probability(1 - common.get(thing.name, 0.0)))
    ][: _MOST_OPTIONS - 2]
    wrong = [
        missing for missing in rest if sampler.chance(_balancing_probability(common.get(missing.name, 0.0)))
    ]
    wrong = wrong[: _MOST_OPTIONS - len(right)]
    if right and wrong:
        turn = _ask_choice(draft, right, wrong, multiple=True)
        turn.choices = [*(Choice(t.bare, right=True) for t in right), *(Choice(m.name) for m in wrong)]


def _balancing_probability(share: float) -> float:
    """Probability to use the more common of two cases, so that both are used equally often.

    `share` is the share of the other case.
    """
    return min(1.0, share / (1 - share)) if share < 1 else 1.0


def _ask_one(draft: ConversationDraft, right: Thing, rest: list[AbsentThing]) -> None:
    """Ask a choice with one right option. Of any two names that are offered, each is right equally often."""
    wrong = _sample_wrong_names(draft, right.kind, right.name, rest)
    if wrong:
        choices = add_none_option(draft, Choice(right.bare, right=True), [Choice(m.name) for m in wrong])
        said = {choice.text for choice in choices}
        asked = [right] if right.bare in said else []
        kept = [missing for missing in wrong if missing.name in said]
        _ask_choice(draft, asked, kept, multiple=False).choices = choices


def _ask_choice(
    draft: ConversationDraft, right: list[Thing], wrong: list[AbsentThing], *, multiple: bool
) -> Turn:
    kind = (right or wrong)[0].kind
    task = "presence" if kind == "finding" else "device presence"
    facts = [thing.target for thing in right]
    facts += [target_row(kind, missing.name) for missing in wrong]
    facts += [thing.truth for thing in right]
    turn = draft.add_question(2, task, "choice/multiple" if multiple else "choice", facts=facts)
    turn.multiple = multiple
    turn.evidence = cite_things(right)
    for thing in right:
        draft.presence[thing.id] = turn
    return turn


_MOST_OPTIONS: Final = 6
_OPTIONS: Final = ((2, 3, 4, 5, 6), (0.15, 0.25, 0.3, 0.24, 0.06))
"""Numbers of options of a choice, and their shares; choices between yes and no are not included."""


def sample_option_count(draft: ConversationDraft) -> int:
    """Sample the number of options of a choice."""
    return draft.sampler.pick_weighted(*_OPTIONS)


def add_none_option(draft: ConversationDraft, right: Choice, wrong: list[Choice]) -> list[Choice]:
    """The options; some lists end with "none of these", which is right as often as any other option of such a list."""
    options = [right, *wrong]
    if len(wrong) < 2 or not draft.sampler.chance(_NONE_SHARE):
        return options
    text = str(draft.sampler.pick(draft.words.wording.common["none_of_these"]))
    if draft.sampler.chance(1 / len(options)):
        return [*wrong, Choice(text, right=True, none=True)]
    return [right, *wrong[1:], Choice(text, none=True)]


# ---- reserved for a choice among lists ------------------------------------------------------------------------------


def _reserve_name(draft: ConversationDraft) -> ReservedName | None:
    """Reserve a name before anything is asked by name, so that every name has the same chance to be reserved."""
    sampler, subject = draft.sampler, draft.subject
    if not sampler.chance(_LIST_CHOICE_SHARE):
        return None
    kind: Kind = "finding" if sampler.chance(_FINDING_LIST_SHARE) else "device"
    if not subject.is_complete(kind):
        return None  # no list is certainly the right one
    things, absent = (
        (subject.findings, subject.absent_findings)
        if kind == "finding"
        else (subject.devices, subject.absent_devices)
    )
    if not things:
        return _reserve_nothing(draft, kind, absent)
    alone = [thing for thing in things if thing.alone]
    # A list with an uncertain finding is neither right nor wrong.
    if not alone or not all(thing.is_present for thing in things):
        return None
    thing = sampler.pick(alone)
    wrong = _sample_wrong_names(draft, kind, thing.name, absent)
    nothing = len(things) == 1 and _may_be_nothing(draft, kind) and sampler.chance(_NOTHING_OFFERED[kind])
    return ReservedName(kind, thing, wrong, nothing) if wrong else None


def _reserve_nothing(draft: ConversationDraft, kind: Kind, absent: list[AbsentThing]) -> ReservedName | None:
    """Reserve a choice with the right answer "nothing", so that it is right as often as any other option.

    The other names are drawn as if one of them were present: names that are never offered beside a right one would
    reveal that none of them is.
    """
    first = _sample_negative(draft, absent)
    if first is None or not _may_be_nothing(draft, kind):
        return None
    supposed = frozenset({first.name})
    rest = [missing for missing in absent if is_clearly_absent(missing.name, supposed)]
    wrong = _sample_wrong_names(draft, kind, first.name, rest)
    any_probability = _get_opening(draft, kind).any_probability
    having, lacking = any_probability[True], any_probability[False]
    if not wrong or not having or lacking >= 1:
        return None
    # Number of studies with something for each without, among those not asked whether anything is present.
    many = lacking / having * (1 - having) / (1 - lacking)
    return (
        ReservedName(kind, None, [first, *wrong[1:]], nothing=True)
        if draft.sampler.chance(many * _NOTHING_RATE[kind] / len(wrong))
        else None
    )


def _sample_wrong_names(
    draft: ConversationDraft, kind: Kind, right: str, absent: list[AbsentThing]
) -> list[AbsentThing]:
    """Wrong names to offer beside a right one; of any two names, each replaces the other equally often.

    Names are drawn independently: with a fixed number of names, each would be drawn more often where there are few.
    """
    sampler, balanced = draft.sampler, draft.survey.balance[kind]
    often, beside, share = (
        sample_option_count(draft) / len(balanced.asked),
        balanced.pair_probability,
        sampler.share,
    )
    drawn = [missing for missing in absent if share() < often * beside.get((right, missing.name), 0.0)]
    return sampler.sample(drawn, _MOST_OPTIONS - 1)


def _may_be_nothing(draft: ConversationDraft, kind: Kind) -> bool:
    """Whether the answers so far leave it open that nothing of a kind is present."""
    # An image with a device is not called normal.
    return kind not in draft.answered_kinds and (kind == "device" or not draft.subject.has_device)


# ---- lists ----------------------------------------------------------------------------------------------------------


def _ask_lists(draft: ConversationDraft, reserved: ReservedName | None) -> None:
    """Ask for lists: one as a choice where a name is reserved for it, the others in open questions."""
    number = draft.sampler.round_randomly(draft.quotas.lists)
    # Where an answer has revealed that nothing of the kind is present, no list is asked for; nor where a list may be
    # incomplete.
    tasks = []
    if (draft.subject.findings or "finding" not in draft.answered_kinds) and draft.is_complete(
        "abnormalities", "finding"
    ):
        tasks.append("abnormalities")
    if (draft.subject.devices or "device" not in draft.answered_kinds) and draft.is_complete(
        "devices", "device"
    ):
        tasks.append("devices")
    if len(tasks) > 1 and draft.sampler.chance(0.4) and _can_join(draft, reserved):
        tasks = ["abnormalities and devices"]
    if reserved is not None:
        # The choice comes first: no question with options follows one that reveals a list.
        tasks.sort(key=lambda task: reserved.kind not in _KINDS[task])
    for place, task in enumerate(tasks[:number]):
        if reserved is not None and place == 0:
            _choose_list(draft, task, reserved)
        else:
            _ask_list(draft, task)


def _can_join(draft: ConversationDraft, reserved: ReservedName | None) -> bool:
    """Whether findings and devices can be in one list: as a choice, only where all of them are certain."""
    return reserved is None or (not reserved.nothing and all(t.is_present for t in draft.subject.things))


def _things_of_list(draft: ConversationDraft, task: str) -> list[Thing]:
    return [thing for thing in draft.subject.things if thing.kind in _KINDS[task]]


def _add_list_turn(draft: ConversationDraft, task: str, variant: str) -> tuple[Turn, list[Thing]]:
    """Add a question for a list, without its key; returns it with the things that belong in the list."""
    turn = draft.add_question(2, task, variant, facts=[target_row("study", task)])
    things = _things_of_list(draft, task)
    for thing in things:
        turn.facts.append(thing.truth)
        draft.presence.setdefault(thing.id, turn)
    turn.evidence = cite_things(things)
    return turn, things


def _choose_list(draft: ConversationDraft, task: str, reserved: ReservedName) -> None:
    """Ask which of several lists is right. They differ in the reserved name, which has the same position in each."""
    sampler, name = draft.sampler, draft.words.name
    closed = _closed_turns(draft)
    turn, things = _add_list_turn(draft, task, "choice")
    turn.facts += [listed_row(thing.id, name(thing.name).a) for thing in things]
    # In the order of the records, the position of a replaced name would be visible.
    order = sorted(sampler.shuffle(things), key=lambda thing: thing.kind != "finding")
    wrong = reserved.wrong
    choices: list[Choice] = []
    if reserved.nothing:
        nothing = draft.fill_clause(2, "nothing", task, slots={})
        choices.append(Choice(nothing, right=reserved.thing is None))
        # "Nothing" replaces a wrong list.
        wrong = wrong if reserved.thing is None else wrong[1:]
    if reserved.thing is None:
        choices += [Choice(name(missing.name).a) for missing in wrong]
    else:
        choices.append(Choice(draft.words.join([name(thing.name).a for thing in order]), right=True))
        for missing in wrong:
            names = [missing.name if thing is reserved.thing else thing.name for thing in order]
            choices.append(Choice(draft.words.join([name(each).a for each in names])))
    turn.choices = choices
    # The question reveals the names that all lists have in common.
    turn.restates = len(things) > 1
    turn.after = closed


def _closed_turns(draft: ConversationDraft) -> list[Turn]:
    """Closed questions so far, whose keys a choice among lists may reveal."""
    return [turn for turn in draft.turns if turn.format in ("yes_no", "choice")]


def _ask_list(draft: ConversationDraft, task: str) -> None:
    join = draft.words.join
    turn, things = _add_list_turn(draft, task, "open")
    if task == "abnormalities and devices":
        findings = [thing.a for thing in things if thing.kind == "finding"]
        devices = [thing.a for thing in things if thing.kind == "device"]
        kind = (
            "both" if findings and devices else "findings" if findings else "devices" if devices else "none"
        )
        slots = {"list": join(findings), "devices": join(devices)}
    else:
        # Names only: attributes and locations are asked for in the next stage.
        names = {thing: draft.words.name(thing.name).a for thing in things}
        sure = [name for thing, name in names.items() if thing.is_present]
        hedged = [name for thing, name in names.items() if not thing.is_present]
        kind = (
            "some_and_possible" if sure and hedged else "some" if sure else "possible" if hedged else "none"
        )
        slots = {"list": join(sure), "possible": join(hedged)}
    turn.answer = draft.fill_answer(turn, kind, slots)


def _ask_others(draft: ConversationDraft, reserved: ReservedName | None) -> bool:
    """Ask what accompanies known findings, instead of asking for a list; returns whether it was asked."""
    sampler, subject = draft.sampler, draft.subject
    known = [thing for thing in subject.findings if thing.id in draft.presence]
    if not known or not draft.is_complete("others", "finding") or not sampler.chance(draft.quotas.others):
        return False
    named = sampler.sample(known, max(1, len(known) - 1) if sampler.chance(0.7) else len(known))
    others = [thing for thing in subject.findings if thing not in named]
    if others and all(thing.id in draft.presence for thing in others):
        return False  # earlier keys have revealed them all
    neutral = sampler.chance(0.4) and len(named) == len(known) and not others
    right = reserved.thing if reserved is not None and reserved.kind == "finding" else None
    variant = "choice" if right is not None else "open/neutral" if neutral else "open"
    slots = {"known": draft.words.join([thing.a for thing in named])}
    facts = [target_row("study", "others")]
    facts += [thing.truth for thing in others]
    closed = _closed_turns(draft)
    turn = draft.add_question(2, "others", variant, slots, facts=facts)
    turn.history = True
    turn.restates = not neutral
    turn.depends = list({id(turn): turn for turn in (draft.presence[t.id] for t in named)}.values())
    turn.evidence = cite_things(others)
    if right is not None and reserved is not None:
        wrong = [Choice(missing.name) for missing in reserved.wrong]
        turn.choices = add_none_option(draft, Choice(right.bare, right=True), wrong)
        turn.after = closed
    else:
        turn.answer = draft.fill_answer(
            turn, "some" if others else "none", {"list": draft.words.join([thing.a for thing in others])}
        )
    return True

"""Stage 2: is anything abnormal, what is there, and what is not.

The order keeps keys from telling later ones: first whether there is anything, then findings by name, then choices,
then lists. A finding is named in one closed question at most.

Named questions are put like this: a fair coin decides whether the next answer is "yes" or "no", and the questions end
with the last finding that is there. So, whatever was answered before, the next answer is as likely "yes" as "no"; a
fixed number of each would give the last ones away. Studies that have nothing join in with a few "no" (`survey.InVain`).

Some lists are put as a choice among whole lists. They differ in one name, which is chosen before anything is asked by
name and is not asked about otherwise: what earlier answers have settled would tell the right list without a look. All
have the same number of names, and each wrong one lies as far from the others as the right one does.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from carina.cases.model import Label
from carina.trek.balance import NO_OPENING, InVain, Opening
from carina.trek.confusable import is_clearly_absent
from carina.trek.records import cited, fact, target
from carina.trek.subject import Absent, Kind, Thing, marks_of
from carina.trek.turn import Choice, Examiner, Turn

_ANY: Final[dict[Kind, str]] = {"finding": "any abnormality", "device": "any device"}
_SITED = 0.2
"""Share of questions about a named finding that name a place too."""
_NONE: Final = 0.4
"""Share of lists of three options or more that end with "none of these"."""
_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "abnormalities": ("finding",),
    "devices": ("device",),
    "abnormalities and devices": ("finding", "device"),
}
"""What each list tells."""
_CHOSEN: Final = 0.6
"""Share of studies to put a list as a choice in, of those that can."""
_FINDINGS: Final = 0.65
"""Of these, the share that is about findings and not about devices."""
_NOTHING: Final[dict[Kind, float]] = {"finding": 1.4, "device": 0.5}
"""How often studies with nothing are offered a choice among lists, for each with something."""
_IN_VAIN: Final[dict[Kind, float]] = {"finding": 0.4, "device": 1.0}
"""Share of the choices with a single name that offer "nothing" too. Both are fitted on phantoms, so that "nothing" is
right about as often as any other option beside it."""


class Reserved(msgspec.Struct, eq=False):
    """What a choice among lists will be about, and so is asked in no other way."""

    kind: Kind
    thing: Thing | None
    """The one that only the right list names; None where there is nothing of the kind."""
    wrong: list[Absent]
    """What the wrong lists name in its place."""
    nothing: bool
    """Whether "nothing" stands among the lists: where it is right, and where only the one name makes it wrong."""


def ask_what_is_there(examiner: Examiner) -> None:
    """Everything about what is there, up to the lists."""
    _ask_any(examiner, "finding")
    _ask_any(examiner, "device")
    reserved = _reserve(examiner)
    taken = set() if reserved is None else {missing.name for missing in reserved.wrong}
    for_choices = _ask_by_name(examiner, taken, reserved)
    _ask_choices(examiner, for_choices, taken)
    if not _ask_others(examiner, reserved):
        _ask_lists(examiner, reserved)


# ---- anything at all ------------------------------------------------------------------------------------------------


def _ask_any(examiner: Examiner, kind: Kind) -> None:
    things = examiner.subject.findings if kind == "finding" else examiner.subject.devices
    if kind == "finding" and not things and examiner.subject.devices:
        return  # with a device in place, nobody would call the image normal
    if not examiner.draw.chance(_opening(examiner, kind).any_asked[bool(things)]):
        return
    there = any(thing.is_present for thing in things)
    label: Label = "yes" if there else "uncertain" if things else "no"
    task = _ANY[kind]
    turn = examiner.ask(2, task, "yes_no", facts=[target("study", task)])
    _answer(examiner, turn, label, {})
    turn.evidence = marks_of(things)
    examiner.kinds_told.add(kind)


def _opening(examiner: Examiner, kind: Kind) -> Opening:
    return examiner.survey.balance[kind].opening.get(examiner.subject.stratum, NO_OPENING)


def _answer(examiner: Examiner, turn: Turn, label: Label, slots: dict[str, str]) -> None:
    """The key of a yes/no question, sometimes dressed as options."""
    turn.label = label
    turn.answer = examiner.say(turn, label, slots)
    if label != "uncertain" and examiner.draw.chance(0.1):
        turn.format = "choice"
        turn.label = None
        turn.choices = [Choice(word.capitalize(), right=word == label) for word in ("yes", "no")]


# ---- by name --------------------------------------------------------------------------------------------------------


def _ask_by_name(examiner: Examiner, taken: set[str], reserved: Reserved | None) -> list[Thing]:
    """Yes/no questions that name a finding or device; returns what is left for choices."""
    draw, subject = examiner.draw, examiner.subject
    left_for_choices: list[Thing] = []
    groups: tuple[tuple[Kind, list[Thing], list[Absent]], ...] = (
        ("finding", subject.findings, subject.absent_findings),
        ("device", subject.devices, subject.absent_devices),
    )
    for kind, things, absent in groups:
        balanced, opening = examiner.survey.balance[kind], _opening(examiner, kind)
        named: list[Thing] = []
        held = reserved if reserved is not None and reserved.kind == kind else None
        there = [
            thing
            for thing in things
            if thing.is_present and thing.alone and (held is None or thing is not held.thing)
        ]
        # As many are asked about as the study can supply negatives for.
        enough = min(1.0, sum(_weights(examiner, absent)) / len(there)) if there else 0.0
        for thing in there:
            if draw.chance(examiner.quotas.choices):
                left_for_choices.append(thing)
            elif draw.chance(enough * balanced.asked.get(thing.name, 0.0)):
                named.append(thing)
        told = kind in examiner.kinds_told
        rest = [missing for missing in absent if missing.name not in taken]
        if named:
            _ask_chain(examiner, draw.shuffled(named), rest, taken, () if told else opening.in_vain)
        elif not things and not told and held is None and (kind == "device" or not subject.devices):
            for step in opening.in_vain:
                if not draw.chance(step.goes_on) or not _ask_in_vain(examiner, rest, taken):
                    break
        for thing in draw.shuffled([t for t in things if t.certainty == "uncertain" and t.alone]):
            _ask_named(examiner, thing)
    return left_for_choices


def _ask_chain(
    examiner: Examiner,
    positives: list[Thing],
    rest: list[Absent],
    taken: set[str],
    in_vain: Sequence[InVain],
) -> None:
    """Up to the last positive. Until the first "yes" it may seem a study that has nothing, so it comes the sooner."""
    asked, any_yes = 0, False
    while positives and asked < examiner.quotas.named:
        sooner = in_vain[asked].yes if not any_yes and asked < len(in_vain) else 0.5
        if examiner.draw.chance(sooner):
            _ask_named(examiner, positives.pop())
            any_yes = True
        elif not _ask_in_vain(examiner, rest, taken):
            return
        asked += 1


def _ask_in_vain(examiner: Examiner, rest: list[Absent], taken: set[str]) -> bool:
    """A question about what is not there, which is taken from the rest; False where there is none left."""
    missing = _negative(examiner, rest)
    if missing is None:
        return False
    rest.remove(missing)
    taken.add(missing.name)
    _ask_absent(examiner, missing)
    return True


def _negative(examiner: Examiner, absent: list[Absent]) -> Absent | None:
    """One of those that are not there, by the weights that balance the set."""
    weights = _weights(examiner, absent)
    return examiner.draw.weighted(absent, weights) if absent and sum(weights) > 0 else None


def _weights(examiner: Examiner, absent: list[Absent]) -> list[float]:
    negative = examiner.survey.balance[absent[0].kind].negative if absent else {}
    return [negative.get(missing.name, 0.0) * missing.plausibility for missing in absent]


def _ask_named(examiner: Examiner, thing: Thing) -> None:
    draw = examiner.draw
    task = "presence" if thing.kind == "finding" else "device presence"
    facts = [thing.target, thing.truth]
    name = examiner.words.name(thing.name)
    slots = {"finding": name.bare, "a_finding": name.a}
    sited = (
        thing.kind == "finding" and thing.is_present and "location" in thing.values and draw.chance(_SITED)
    )
    if sited:
        slots["at"] = thing.values["location"]
        # The answer tells where it lies, so that is not asked any more.
        examiner.known_places.add(thing.id)
    turn = examiner.ask(2, task, "yes_no/sited" if sited else "yes_no", slots, facts=facts)
    _answer(examiner, turn, "yes" if thing.is_present else "uncertain", slots)
    turn.evidence = thing.marks
    examiner.presence[thing.id] = turn


def _ask_absent(examiner: Examiner, missing: Absent) -> None:
    task = "presence" if missing.kind == "finding" else "device presence"
    facts = [
        target(missing.kind, missing.name),
        fact("truth", missing.id, "absent"),
        fact("negative", "", missing.origin),
    ]
    name = examiner.words.name(missing.name)
    slots = {"finding": name.bare, "a_finding": name.a}
    places = examiner.survey.wrong.get((missing.name, "location"))
    sited = missing.kind == "finding" and places is not None and examiner.draw.chance(_SITED)
    if sited and places is not None:
        slots["at"] = examiner.draw.weighted(places.values, places.shares)
    turn = examiner.ask(2, task, "yes_no/sited" if sited else "yes_no", slots, facts=facts)
    _answer(examiner, turn, "no", slots)
    turn.evidence = cited("current", missing.evidence)


# ---- among options --------------------------------------------------------------------------------------------------


def _ask_choices(examiner: Examiner, things: list[Thing], taken: set[str]) -> None:
    """Which of these is there: the findings that were not asked about by name, among others that are not there."""
    draw, subject = examiner.draw, examiner.subject
    for kind, absent in (("finding", subject.absent_findings), ("device", subject.absent_devices)):
        right = draw.shuffled([thing for thing in things if thing.kind == kind])
        if not right:
            continue
        rest = draw.shuffled([missing for missing in absent if missing.name not in taken])
        if len(right) > 1:
            _ask_several(examiner, right, rest)
        else:
            _ask_one(examiner, right[0], rest)


def _ask_several(examiner: Examiner, things: list[Thing], rest: list[Absent]) -> None:
    """Any number is right. A name is offered as often where it is wrong as where it is right."""
    draw, common = examiner.draw, examiner.survey.balance[things[0].kind].in_company
    right = [thing for thing in things if draw.chance(_odds(1 - common.get(thing.name, 0.0)))][
        : _MOST_OPTIONS - 2
    ]
    wrong = [missing for missing in rest if draw.chance(_odds(common.get(missing.name, 0.0)))]
    wrong = wrong[: _MOST_OPTIONS - len(right)]
    if right and wrong:
        turn = _ask_choice(examiner, right, wrong, multiple=True)
        turn.choices = [*(Choice(t.bare, right=True) for t in right), *(Choice(m.name) for m in wrong)]


def _odds(share: float) -> float:
    """How often to take one of two that is not that common, so that both are taken as often."""
    return min(1.0, share / (1 - share)) if share < 1 else 1.0


def _ask_one(examiner: Examiner, right: Thing, rest: list[Absent]) -> None:
    """One is right. Of any two names that are offered, neither is right more often than the other."""
    wrong = _instead(examiner, right.kind, right.name, rest)
    if wrong:
        choices = with_none(examiner, Choice(right.bare, right=True), [Choice(m.name) for m in wrong])
        said = {choice.text for choice in choices}
        asked = [right] if right.bare in said else []
        kept = [missing for missing in wrong if missing.name in said]
        _ask_choice(examiner, asked, kept, multiple=False).choices = choices


def _ask_choice(examiner: Examiner, right: list[Thing], wrong: list[Absent], *, multiple: bool) -> Turn:
    kind = (right or wrong)[0].kind
    task = "presence" if kind == "finding" else "device presence"
    facts = [thing.target for thing in right]
    facts += [target(kind, missing.name) for missing in wrong]
    facts += [thing.truth for thing in right]
    turn = examiner.ask(2, task, "choice/multiple" if multiple else "choice", facts=facts)
    turn.multiple = multiple
    turn.evidence = marks_of(right)
    for thing in right:
        examiner.presence[thing.id] = turn
    return turn


_MOST_OPTIONS: Final = 6
_OPTIONS: Final = ((2, 3, 4, 5, 6), (0.15, 0.25, 0.3, 0.24, 0.06))
"""How many options a choice has, and how often; yes and no dressed as options are apart."""


def options_wanted(examiner: Examiner) -> int:
    """How many options a choice shall have."""
    return examiner.draw.weighted(*_OPTIONS)


def with_none(examiner: Examiner, right: Choice, wrong: list[Choice]) -> list[Choice]:
    """Some lists end with "none of these", which is right as often as any other option of such a list."""
    options = [right, *wrong]
    if len(wrong) < 2 or not examiner.draw.chance(_NONE):
        return options
    text = str(examiner.draw.pick(examiner.words.wording.common["none_of_these"]))
    if examiner.draw.chance(1 / len(options)):
        return [*wrong, Choice(text, right=True, none=True)]
    return [right, *wrong[1:], Choice(text, none=True)]


# ---- reserved for a choice among lists ------------------------------------------------------------------------------


def _reserve(examiner: Examiner) -> Reserved | None:
    """Drawn before anything is asked by name, so that no name is more often left over for it than another."""
    draw, subject = examiner.draw, examiner.subject
    if not draw.chance(_CHOSEN):
        return None
    kind: Kind = "finding" if draw.chance(_FINDINGS) else "device"
    things, absent = (
        (subject.findings, subject.absent_findings)
        if kind == "finding"
        else (subject.devices, subject.absent_devices)
    )
    if not things:
        return _reserve_nothing(examiner, kind, absent)
    alone = [thing for thing in things if thing.alone]
    # A list with a name that only may belong there is neither right nor wrong.
    if not alone or not all(thing.is_present for thing in things):
        return None
    thing = draw.pick(alone)
    wrong = _instead(examiner, kind, thing.name, absent)
    nothing = len(things) == 1 and _may_be_nothing(examiner, kind) and draw.chance(_IN_VAIN[kind])
    return Reserved(kind, thing, wrong, nothing) if wrong else None


def _reserve_nothing(examiner: Examiner, kind: Kind, absent: list[Absent]) -> Reserved | None:
    """That there is nothing is to be right as often as any other option where it is offered.

    The names beside it are drawn as if one of them were there: names that are never offered beside a right one would
    tell that none of them is.
    """
    first = _negative(examiner, absent)
    if first is None or not _may_be_nothing(examiner, kind):
        return None
    supposed = frozenset({first.name})
    rest = [missing for missing in absent if is_clearly_absent(missing.name, supposed)]
    wrong = _instead(examiner, kind, first.name, rest)
    any_asked = _opening(examiner, kind).any_asked
    having, lacking = any_asked[True], any_asked[False]
    if not wrong or not having or lacking >= 1:
        return None
    # Studies with something for one without, of those in which it was not asked whether there is anything.
    many = lacking / having * (1 - having) / (1 - lacking)
    return (
        Reserved(kind, None, [first, *wrong[1:]], nothing=True)
        if examiner.draw.chance(many * _NOTHING[kind] / len(wrong))
        else None
    )


def _instead(examiner: Examiner, kind: Kind, right: str, absent: list[Absent]) -> list[Absent]:
    """What to name in place of what is right; of any two names, neither takes the other's place more often.

    Each is drawn by itself: as one of a given number, a name would come the more often the fewer others there are.
    """
    draw, balanced = examiner.draw, examiner.survey.balance[kind]
    often, beside, share = options_wanted(examiner) / len(balanced.asked), balanced.beside, draw.share
    drawn = [missing for missing in absent if share() < often * beside.get((right, missing.name), 0.0)]
    return draw.sample(drawn, _MOST_OPTIONS - 1)


def _may_be_nothing(examiner: Examiner, kind: Kind) -> bool:
    """Whether, for all that is known before anything is asked by name, there may be nothing of a kind."""
    # With a device in place, nobody would call the image normal.
    return kind not in examiner.kinds_told and (kind == "device" or not examiner.subject.devices)


# ---- lists ----------------------------------------------------------------------------------------------------------


def _ask_lists(examiner: Examiner, reserved: Reserved | None) -> None:
    """What there is: one list as a choice where a name is reserved for it, the others in open questions."""
    number = examiner.draw.rounded(examiner.quotas.lists)
    # Where it was told that there is none, none is asked for.
    tasks = []
    if examiner.subject.findings or "finding" not in examiner.kinds_told:
        tasks.append("abnormalities")
    if examiner.subject.devices or "device" not in examiner.kinds_told:
        tasks.append("devices")
    if len(tasks) > 1 and examiner.draw.chance(0.4) and _can_join(examiner, reserved):
        tasks = ["abnormalities and devices"]
    if reserved is not None:
        # The choice comes first: no question with options follows one that tells a list.
        tasks.sort(key=lambda task: reserved.kind not in _KINDS[task])
    for place, task in enumerate(tasks[:number]):
        if reserved is not None and place == 0:
            _choose_list(examiner, task, reserved)
        else:
            _ask_list(examiner, task)


def _can_join(examiner: Examiner, reserved: Reserved | None) -> bool:
    """Whether findings and devices can be told in one list: as a choice, only where all of both are certain."""
    return reserved is None or (not reserved.nothing and all(t.is_present for t in examiner.subject.things))


def _listed(examiner: Examiner, task: str) -> list[Thing]:
    return [thing for thing in examiner.subject.things if thing.kind in _KINDS[task]]


def _list_turn(examiner: Examiner, task: str, variant: str) -> tuple[Turn, list[Thing]]:
    """A question for a list, without its key, and what belongs in the list."""
    turn = examiner.ask(2, task, variant, facts=[target("study", task)])
    things = _listed(examiner, task)
    for thing in things:
        turn.facts.append(thing.truth)
        examiner.presence.setdefault(thing.id, turn)
    turn.evidence = marks_of(things)
    return turn, things


def _choose_list(examiner: Examiner, task: str, reserved: Reserved) -> None:
    """Which of several lists is right. They differ in the reserved name, at the same place of each."""
    draw, name = examiner.draw, examiner.words.name
    closed = _closed(examiner)
    turn, things = _list_turn(examiner, task, "choice")
    turn.facts += [fact("listed", thing.id, name(thing.name).a) for thing in things]
    # The order of the records would show where a name has taken another's place.
    order = sorted(draw.shuffled(things), key=lambda thing: thing.kind != "finding")
    wrong = reserved.wrong
    choices: list[Choice] = []
    if reserved.nothing:
        nothing = examiner.clause(2, "nothing", task, slots={})
        choices.append(Choice(nothing, right=reserved.thing is None))
        # It takes the place of a wrong list.
        wrong = wrong if reserved.thing is None else wrong[1:]
    if reserved.thing is None:
        choices += [Choice(name(missing.name).a) for missing in wrong]
    else:
        choices.append(Choice(examiner.words.join([name(thing.name).a for thing in order]), right=True))
        for missing in wrong:
            names = [missing.name if thing is reserved.thing else thing.name for thing in order]
            choices.append(Choice(examiner.words.join([name(each).a for each in names])))
    turn.choices = choices
    # What all lists name is told by the question.
    turn.restates = len(things) > 1
    turn.after = closed


def _closed(examiner: Examiner) -> list[Turn]:
    """Questions so far whose keys a choice among lists may tell, in whatever order they are asked."""
    return [turn for turn in examiner.turns if turn.format in ("yes_no", "choice")]


def _ask_list(examiner: Examiner, task: str) -> None:
    join = examiner.words.join
    turn, things = _list_turn(examiner, task, "open")
    if task == "abnormalities and devices":
        findings = [thing.a for thing in things if thing.kind == "finding"]
        devices = [thing.a for thing in things if thing.kind == "device"]
        kind = (
            "both" if findings and devices else "findings" if findings else "devices" if devices else "none"
        )
        slots = {"list": join(findings), "devices": join(devices)}
    else:
        # Names only: where and how is asked in the next stage.
        names = {thing: examiner.words.name(thing.name).a for thing in things}
        sure = [name for thing, name in names.items() if thing.is_present]
        hedged = [name for thing, name in names.items() if not thing.is_present]
        kind = (
            "some_and_possible" if sure and hedged else "some" if sure else "possible" if hedged else "none"
        )
        slots = {"list": join(sure), "possible": join(hedged)}
    turn.answer = examiner.say(turn, kind, slots)


def _ask_others(examiner: Examiner, reserved: Reserved | None) -> bool:
    """What accompanies something that is known by now, instead of a list that would tell it; whether it was asked."""
    draw, subject = examiner.draw, examiner.subject
    known = [thing for thing in subject.findings if thing.id in examiner.presence]
    if not known or not draw.chance(examiner.quotas.others):
        return False
    named = draw.sample(known, max(1, len(known) - 1) if draw.chance(0.7) else len(known))
    others = [thing for thing in subject.findings if thing not in named]
    if others and all(thing.id in examiner.presence for thing in others):
        return False  # earlier keys have told them all
    neutral = draw.chance(0.4) and len(named) == len(known) and not others
    right = reserved.thing if reserved is not None and reserved.kind == "finding" else None
    variant = "choice" if right is not None else "open/neutral" if neutral else "open"
    slots = {"known": examiner.words.join([thing.a for thing in named])}
    facts = [target("study", "others")]
    facts += [thing.truth for thing in others]
    closed = _closed(examiner)
    turn = examiner.ask(2, "others", variant, slots, facts=facts)
    turn.history = True
    turn.restates = not neutral
    turn.depends = list({id(turn): turn for turn in (examiner.presence[t.id] for t in named)}.values())
    turn.evidence = marks_of(others)
    if right is not None and reserved is not None:
        wrong = [Choice(missing.name) for missing in reserved.wrong]
        turn.choices = with_none(examiner, Choice(right.bare, right=True), wrong)
        turn.after = closed
    else:
        turn.answer = examiner.say(
            turn, "some" if others else "none", {"list": examiner.words.join([thing.a for thing in others])}
        )
    return True

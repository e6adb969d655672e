"""Stage 2: is anything abnormal, what is there, and what is not.

The order keeps keys from telling later ones: first whether there is anything, then findings by name, then choices,
then lists. A finding is named in one closed question at most.

Named questions are put like this: a fair coin decides whether the next answer is "yes" or "no", and the questions end
with the last finding that is there. So, whatever was answered before, the next answer is as likely "yes" as "no"; a
fixed number of each would give the last ones away. Studies that have nothing join in with a few "no" (`survey.InVain`).
"""

from collections.abc import Sequence
from typing import Final

from carina.cases import Evidence, Fact
from carina.cases.model import Label
from carina.trek.balance import NO_OPENING, InVain, Opening
from carina.trek.subject import Absent, Kind, Thing
from carina.trek.turn import Choice, Examiner, Turn, target

_ANY: Final[dict[Kind, str]] = {"finding": "any abnormality", "device": "any device"}
_SITED = 0.2
"""Share of questions about a named finding that name a place too."""
_NONE: Final = 0.4
"""Share of lists of three options or more that end with "none of these"."""


def ask_what_is_there(examiner: Examiner) -> None:
    """Everything about what is there, up to the lists."""
    _ask_any(examiner, "finding")
    _ask_any(examiner, "device")
    taken: set[str] = set()
    for_choices = _ask_by_name(examiner, taken)
    _ask_choices(examiner, for_choices, taken)
    if not _ask_others(examiner):
        _ask_lists(examiner)


# ---- anything at all ------------------------------------------------------------------------------------------------


def _ask_any(examiner: Examiner, kind: Kind) -> None:
    things = examiner.subject.findings if kind == "finding" else examiner.subject.devices
    there = any(thing.is_present for thing in things)
    if kind == "finding" and not things and examiner.subject.devices:
        return  # with a device in place, nobody would call the image normal
    if not examiner.draw.chance(_opening(examiner, kind).any_asked[bool(things)]):
        return
    label: Label = "yes" if there else "uncertain" if things else "no"
    task = _ANY[kind]
    turn = examiner.ask(2, task, "yes_no", facts=[target("study", task)])
    _answer(examiner, turn, label, {})
    turn.evidence = tuple(dict.fromkeys(mark for thing in things for mark in thing.marks))


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


def _ask_by_name(examiner: Examiner, taken: set[str]) -> list[Thing]:
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
        there = [thing for thing in things if thing.is_present and thing.alone]
        # As many are asked about as the study can supply negatives for.
        enough = min(1.0, sum(_weights(examiner, absent)) / max(1, len(there)))
        for thing in there:
            if draw.chance(examiner.quotas.choices):
                left_for_choices.append(thing)
            elif draw.chance(enough * balanced.asked.get(thing.name, 0.0)):
                named.append(thing)
        told = any(turn.task == _ANY[kind] for turn in examiner.turns)
        rest = list(absent)
        if named:
            _ask_chain(examiner, draw.shuffled(named), rest, () if told else opening.in_vain)
        elif not things and not told and (kind == "device" or not subject.devices):
            for step in opening.in_vain:
                if not draw.chance(step.goes_on) or not _ask_in_vain(examiner, rest):
                    break
        taken.update({missing.name for missing in absent} - {missing.name for missing in rest})
        for thing in draw.shuffled([t for t in things if t.certainty == "uncertain" and t.alone]):
            _ask_named(examiner, thing)
    return left_for_choices


def _ask_chain(
    examiner: Examiner, positives: list[Thing], rest: list[Absent], in_vain: Sequence[InVain]
) -> None:
    """Up to the last positive. Until the first "yes" it may seem a study that has nothing, so it comes the sooner."""
    asked, any_yes = 0, False
    while positives and asked < examiner.quotas.named:
        sooner = in_vain[asked].yes if not any_yes and asked < len(in_vain) else 0.5
        if examiner.draw.chance(sooner):
            _ask_named(examiner, positives.pop())
            any_yes = True
        elif not _ask_in_vain(examiner, rest):
            return
        asked += 1


def _ask_in_vain(examiner: Examiner, rest: list[Absent]) -> bool:
    """A question about what is not there, which is taken from the rest; False where there is none left."""
    missing = _negative(examiner, rest)
    if missing is None:
        return False
    rest.remove(missing)
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
    facts = [
        thing.target,
        thing.truth,
    ]
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
        Fact(name="target", about=missing.kind, text=missing.name),
        Fact(name="truth", about=missing.id, text="absent"),
        Fact(name="negative", text=missing.origin),
    ]
    name = examiner.words.name(missing.name)
    slots = {"finding": name.bare, "a_finding": name.a}
    places = examiner.survey.wrong.get((missing.name, "location"))
    sited = missing.kind == "finding" and places is not None and examiner.draw.chance(_SITED)
    if sited and places is not None:
        slots["at"] = examiner.draw.weighted(places.values, places.shares)
    turn = examiner.ask(2, task, "yes_no/sited" if sited else "yes_no", slots, facts=facts)
    _answer(examiner, turn, "no", slots)
    turn.evidence = _sentences(missing)


def _sentences(missing: Absent) -> tuple[Evidence, ...]:
    return tuple(Evidence(report="current", sentence=number) for number in missing.evidence)


# ---- among options --------------------------------------------------------------------------------------------------


def _ask_choices(examiner: Examiner, things: list[Thing], taken: set[str]) -> None:
    """Which of these is there: the findings that were not asked about by name, among others that are not there."""
    draw, subject = examiner.draw, examiner.subject
    for kind, absent in (("finding", subject.absent_findings), ("device", subject.absent_devices)):
        right = draw.shuffled([thing for thing in things if thing.kind == kind])
        rest = draw.shuffled([missing for missing in absent if missing.name not in taken])
        if len(right) > 1:
            _ask_several(examiner, right, rest)
        elif right:
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
    beside = examiner.survey.balance[right.kind].beside
    rest = [missing for missing in rest if (right.name, missing.name) in beside]
    for number in range(options_wanted(examiner) - 1, 0, -1):
        wrong = rest[:number]
        if len(wrong) < number:
            continue
        if examiner.draw.chance(min(beside[right.name, missing.name] for missing in wrong)):
            choices = with_none(examiner, Choice(right.bare, right=True), [Choice(m.name) for m in wrong])
            said = {choice.text for choice in choices}
            asked = [right] if right.bare in said else []
            kept = [missing for missing in wrong if missing.name in said]
            _ask_choice(examiner, asked, kept, multiple=False).choices = choices
            return


def _ask_choice(examiner: Examiner, right: list[Thing], wrong: list[Absent], *, multiple: bool) -> Turn:
    kind = (right or wrong)[0].kind
    task = "presence" if kind == "finding" else "device presence"
    facts = [thing.target for thing in right]
    facts += [Fact(name="target", about=kind, text=missing.name) for missing in wrong]
    facts += [thing.truth for thing in right]
    turn = examiner.ask(2, task, "choice/multiple" if multiple else "choice", facts=facts)
    turn.multiple = multiple
    turn.evidence = tuple(dict.fromkeys(mark for thing in right for mark in thing.marks))
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


# ---- lists ----------------------------------------------------------------------------------------------------------


def _ask_lists(examiner: Examiner) -> None:
    """What there is, in open questions."""
    number = examiner.draw.rounded(examiner.quotas.lists)
    # Where it was told that there is none, none is asked for.
    told = {turn.task for turn in examiner.turns}
    tasks = []
    if examiner.subject.findings or _ANY["finding"] not in told:
        tasks.append("abnormalities")
    if examiner.subject.devices or _ANY["device"] not in told:
        tasks.append("devices")
    if len(tasks) > 1 and examiner.draw.chance(0.4):
        tasks = ["abnormalities and devices"]
    for task in tasks[:number]:
        _ask_list(examiner, task)


def _ask_list(examiner: Examiner, task: str) -> None:
    subject, join = examiner.subject, examiner.words.join
    turn = examiner.ask(2, task, "open", facts=[target("study", task)])
    findings = subject.findings if task != "devices" else []
    devices = subject.devices if task != "abnormalities" else []
    for thing in (*findings, *devices):
        turn.facts.append(thing.truth)
        examiner.presence.setdefault(thing.id, turn)
    turn.evidence = tuple(dict.fromkeys(mark for thing in (*findings, *devices) for mark in thing.marks))
    if task == "abnormalities and devices":
        kind = (
            "both" if findings and devices else "findings" if findings else "devices" if devices else "none"
        )
        slots = {
            "list": join([thing.a for thing in findings]),
            "devices": join([thing.a for thing in devices]),
        }
    else:
        things = findings or devices
        # Names only: where and how is asked in the next stage.
        names = {thing: examiner.words.name(thing.name).a for thing in things}
        sure = [name for thing, name in names.items() if thing.is_present]
        hedged = [name for thing, name in names.items() if not thing.is_present]
        kind = (
            "some_and_possible" if sure and hedged else "some" if sure else "possible" if hedged else "none"
        )
        slots = {"list": join(sure), "possible": join(hedged)}
    turn.answer = examiner.say(turn, kind, slots)


def _ask_others(examiner: Examiner) -> bool:
    """What accompanies something that is known by now, instead of a list that would tell it; whether it was asked."""
    draw, subject = examiner.draw, examiner.subject
    known = [thing for thing in subject.findings if thing.id in examiner.presence]
    if not known or not draw.chance(examiner.quotas.others):
        return False
    named = draw.sample(known, max(1, len(known) - 1) if draw.chance(0.7) else len(known))
    others = [thing for thing in subject.findings if thing not in named]
    neutral = draw.chance(0.4) and len(named) == len(known) and not others
    slots = {"known": examiner.words.join([thing.a for thing in named])}
    facts = [target("study", "others")]
    facts += [thing.truth for thing in others]
    turn = examiner.ask(2, "others", "open/neutral" if neutral else "open", slots, facts=facts)
    turn.history = True
    turn.restates = not neutral
    turn.depends = list({id(turn): turn for turn in (examiner.presence[t.id] for t in named)}.values())
    turn.answer = examiner.say(
        turn, "some" if others else "none", {"list": examiner.words.join([thing.a for thing in others])}
    )
    turn.evidence = tuple(dict.fromkeys(mark for thing in others for mark in thing.marks))
    return True

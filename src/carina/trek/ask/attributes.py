"""Stage 3, in words: where each finding and device lies, how severe it is, how it looks; and what a region holds.

An attribute is asked about once, in one form. What tells several at once (a description, the content of a region, a
vignette) comes after what it would tell, or instead of it.
"""

from typing import Final

from carina.cases import Fact
from carina.studies.vocabulary import ZONES
from carina.trek.ask.findings import options_wanted, with_none
from carina.trek.balance import Wrong
from carina.trek.records import fact, target
from carina.trek.subject import Thing, clear_of, marks_of
from carina.trek.turn import Choice, Examiner, Turn

_FORMS: Final = ("open", "yes_no", "choice", "statement")
_SHARES: Final = (0.05, 0.50, 0.31, 0.14)
_SLOT: Final = {
    "side": ("on_side", "right_on_side"),
    "location": ("at", "right_at"),
    "severity": ("grade", "right_grade"),
    "appearance": ("look", "right_looks"),
    "distribution": ("spread", "right_spread"),
}
_OPEN_SLOT: Final = {
    "side": "on_side",
    "location": "at",
    "severity": "grade",
    "appearance": "looks",
    "distribution": "spread",
}
_PLACED: Final = ("side", "location", "position")
"""In the order in which each tells the one before."""
_SIDE_FIRST: Final = 0.2
"""Share of the findings whose side is asked for before their place, which is then asked for openly."""
_BY_ZONES: Final = 0.75
"""Share of the closed questions about a place that ask for all its zones."""
_VIGNETTE_OPTIONS: Final = 5


def ask_attributes(examiner: Examiner) -> None:
    """Everything that is known of everything that is there."""
    for thing in examiner.subject.things:
        if not thing.alone:
            continue
        first = len(examiner.turns)
        if not _ask_vignette(examiner, thing):
            _ask_each(examiner, thing)
        asked = examiner.turns[first:]
        _ask_measure(examiner, thing)
        _ask_description(examiner, thing, asked)


def _about(examiner: Examiner, turn: Turn, thing: Thing) -> Turn:
    """A question that names something as there: it restates what an earlier turn has settled."""
    turn.restates = True
    turn.evidence = thing.marks
    settled = examiner.presence.get(thing.id)
    if settled is not None:
        turn.depends = (settled,)
    return turn


# ---- one attribute --------------------------------------------------------------------------------------------------


def _ask_each(examiner: Examiner, thing: Thing) -> None:
    draw = examiner.draw
    attributes = draw.shuffled([name for name in thing.values if name not in _PLACED])
    placed = [name for name in _PLACED if name in thing.values]
    if "position" in placed and _ask_whether_placed(examiner, thing):
        placed = []
    if "side" in placed and "location" in placed and not draw.chance(_SIDE_FIRST):
        placed.remove("side")
    if thing.id not in examiner.known_places:
        cut = draw.below(len(attributes) + 1)
        attributes = [*attributes[:cut], *placed, *attributes[cut:]]
    for attribute in attributes:
        if not draw.chance(examiner.quotas.attributes):
            continue
        if attribute == "position":
            _ask_position(examiner, thing)
            continue
        form = draw.weighted(_FORMS, _SHARES)
        if form == "open" or not _ask_closed(examiner, thing, attribute, form):
            _ask_open(examiner, thing, attribute)
        if attribute == "side":
            examiner.sides_told.add(thing.id)


def _named(thing: Thing, attribute: str) -> str:
    """What has the attribute: of a device it is the tip that has a place."""
    return thing.tip if attribute == "location" and thing.tip is not None else thing.the


def _facts(thing: Thing, attribute: str) -> list[Fact]:
    return [thing.target, fact(attribute, thing.id, thing.values[attribute])]


def _ask_open(examiner: Examiner, thing: Thing, attribute: str) -> None:
    slots = {"the_finding": _named(thing, attribute)}
    turn = _about(examiner, examiner.ask(3, attribute, "open", slots, facts=_facts(thing, attribute)), thing)
    slots[_OPEN_SLOT[attribute]] = thing.values[attribute]
    turn.answer = examiner.say(turn, "any", slots)


def _ask_closed(examiner: Examiner, thing: Thing, attribute: str, form: str) -> bool:
    """In a form with a wrong value; False where the set has no wrong value for this one."""
    draw = examiner.draw
    wrong = examiner.survey.wrong.get((thing.calling, attribute))
    value = thing.values[attribute]
    if attribute in ("side", "location") and examiner.places_told:
        return False
    # Most wrong places are on the other side.
    if attribute == "location" and thing.id in examiner.sides_told:
        return False
    if attribute == "location" and thing.zones and draw.chance(_BY_ZONES):
        return _ask_zones(examiner, thing)
    if attribute == "side" and form == "statement":
        form = "choice"
    if wrong is None or value not in wrong.asked or not draw.chance(wrong.asked[value]):
        return False
    if not sum(wrong.weights[value]):
        return False
    if form == "yes_no":
        _ask_yes_no(examiner, thing, attribute, draw.weighted(wrong.values, wrong.weights[value]))
    elif form == "choice":
        _ask_choice(examiner, thing, attribute, _wrong_options(examiner, wrong, value))
    else:
        _ask_statement(examiner, thing, attribute, _wrong_options(examiner, wrong, value))
    return True


def _wrong_options(examiner: Examiner, wrong: Wrong, value: str) -> list[str]:
    """Wrong values such that none of the options, the right one among them, is the likelier to be right.

    Of a pair that holds by the weights. A longer list is drawn evenly and kept as often as its rarest value is common;
    otherwise it would be right to guess the most common one.
    """
    draw = examiner.draw
    number = options_wanted(examiner) - 1
    fit = [text for text, weight in zip(wrong.values, wrong.weights[value], strict=True) if weight > 0]
    for length in range(min(number, len(fit)), 1, -1):
        drawn = draw.sample(fit, length)
        apart = all(
            wrong.weights[one][wrong.values.index(other)] > 0
            for place, one in enumerate(drawn)
            for other in drawn[:place]
        )
        if apart:
            right, *others = [wrong.shares[wrong.values.index(text)] for text in (value, *drawn)]
            if draw.chance(min(others) / right):
                return drawn
    return [draw.weighted(wrong.values, wrong.weights[value])]


def _ask_yes_no(examiner: Examiner, thing: Thing, attribute: str, other: str) -> None:
    said, right = _SLOT[attribute]
    true = examiner.draw.chance(0.5)
    value = thing.values[attribute] if true else other
    slots = {"the_finding": _named(thing, attribute), said: value}
    turn = _about(
        examiner, examiner.ask(3, attribute, "yes_no", slots, facts=_facts(thing, attribute)), thing
    )
    turn.label = "yes" if true else "no"
    slots[right] = thing.values[attribute]
    turn.answer = examiner.say(turn, turn.label, slots)


def _ask_choice(examiner: Examiner, thing: Thing, attribute: str, wrong: list[str]) -> None:
    slots = {"the_finding": _named(thing, attribute)}
    turn = _about(
        examiner, examiner.ask(3, attribute, "choice", slots, facts=_facts(thing, attribute)), thing
    )
    turn.choices = with_none(
        examiner, Choice(thing.values[attribute], right=True), [Choice(text) for text in wrong]
    )


def _ask_zones(examiner: Examiner, thing: Thing) -> bool:
    """Which of some zones it lies in, one or several; False where there is no zone that it does not lie in."""
    draw, held = examiner.draw, thing.zones
    if not held:
        return False
    right = draw.sample([zone for zone in ZONES if zone in held], 2 + draw.below(2))
    wrong = draw.sample(clear_of(held), 1 + draw.below(3))
    if not (right and wrong):
        return False
    slots = {"the_finding": thing.the}
    facts = _facts(thing, "location")
    turn = _about(examiner, examiner.ask(3, "location", "choice/multiple", slots, facts=facts), thing)
    turn.multiple = True
    turn.choices = [*(Choice(zone, right=True) for zone in right), *(Choice(zone) for zone in wrong)]
    return True


def _ask_statement(examiner: Examiner, thing: Thing, attribute: str, wrong: list[str]) -> None:
    """Which statement fits: one about the attribute is right, the others are right of something else, or elsewhere."""
    slots = {"the_finding": _named(thing, attribute)}
    turn = _about(
        examiner, examiner.ask(3, "statement", "choice", slots, facts=_facts(thing, attribute)), thing
    )
    texts = [thing.values[attribute], *wrong]
    slot = _OPEN_SLOT[attribute]
    said = [examiner.clause(3, "statement", attribute, slots={slot: text}) for text in texts]
    turn.choices = [Choice(text, right=number == 0) for number, text in enumerate(said)]


def _ask_whether_placed(examiner: Examiner, thing: Thing) -> bool:
    """Whether a device lies where it should, in a closed form, which goes before its place: a place tells as much."""
    position, at = thing.values["position"], thing.values.get("location")
    known = examiner.survey.wrong.get((thing.calling, "position"))
    if at is None or known is None or not examiner.draw.chance(0.5 * known.asked.get(position, 0.0)):
        return False
    variant = examiner.draw.pick(("yes_no", "choice"))
    slots = {"the_finding": thing.the, "at": at}
    facts = _facts(thing, "position")
    turn = _about(examiner, examiner.ask(3, "position", variant, slots, facts=facts), thing)
    adequate = position == "adequate"
    if variant == "choice":
        words = examiner.words.wording.grammar["position"]
        turn.choices = [Choice(text, right=state == position) for state, text in words.items()]
    else:
        turn.label = "yes" if adequate else "no"
        turn.answer = examiner.say(turn, turn.label, slots)
    return True


def _ask_position(examiner: Examiner, thing: Thing) -> None:
    """Whether a device lies where it should, after its place."""
    at = thing.values.get("location")
    if at is None:
        return
    slots = {"the_finding": thing.the, "at": at}
    turn = _about(
        examiner, examiner.ask(3, "position", "open", slots, facts=_facts(thing, "position")), thing
    )
    turn.answer = examiner.say(turn, thing.values["position"], slots)


# ---- several at once ------------------------------------------------------------------------------------------------


def _ask_vignette(examiner: Examiner, thing: Thing) -> bool:
    """A case in a sentence, then which description fits: instead of asking attribute by attribute."""
    indication = examiner.subject.study.indication
    if (
        not indication
        or thing.kind != "finding"
        or not thing.is_present
        or not examiner.draw.chance(examiner.quotas.vignette)
    ):
        return False
    wrong = [text for text in examiner.survey.descriptions.get(thing.name, ()) if text != thing.plain]
    place, grade = thing.means("location"), thing.values.get("severity")
    # Another description is wrong where it excludes this one: less detail would be right, too.
    wrong = [text for text in wrong if _excludes(examiner.survey.told[text], place, grade)]
    if len(wrong) < _VIGNETTE_OPTIONS - 1 or thing.id in examiner.known_places or examiner.places_told:
        return False
    number = _VIGNETTE_OPTIONS + examiner.draw.below(2)
    facts = [thing.target]
    facts += [fact(name, thing.id, value) for name, value in thing.values.items()]
    slots = {"indication": indication}
    turn = _about(examiner, examiner.ask(3, "vignette", "choice", slots, facts=facts), thing)
    turn.choices = [Choice(thing.plain, right=True)]
    turn.choices += [Choice(text) for text in examiner.draw.sample(wrong, number - 1)]
    return True


def _excludes(told: tuple[frozenset[str], str | None], place: frozenset[str], grade: str | None) -> bool:
    elsewhere, other = told
    apart = bool(place) and bool(elsewhere) and not place & elsewhere
    return apart or (grade is not None and other is not None and grade != other)


def _ask_measure(examiner: Examiner, thing: Thing) -> None:
    measure = thing.measure
    if measure is None or not thing.is_present or not examiner.draw.chance(0.6):
        return
    quantity = examiner.words.wording.common["quantity"].get(measure.name, measure.name)
    value = f"{measure.value:.2f}" if measure.unit == "1" else f"{measure.value:g} {measure.unit}"
    slots = {"the_finding": thing.the, "quantity": quantity}
    facts = [thing.target, Fact(name="measure", about=thing.id, text=measure.name, value=measure.value)]
    turn = _about(examiner, examiner.ask(3, "measure", "open", slots, facts=facts), thing)
    turn.answer = examiner.say(turn, "any", {**slots, "value": value})


def _ask_description(examiner: Examiner, thing: Thing, asked: list[Turn]) -> None:
    if asked and not examiner.draw.chance(examiner.quotas.described):
        return
    facts = [thing.target]
    facts += [fact(name, thing.id, value) for name, value in thing.values.items()]
    slots = {"the_finding": thing.the}
    turn = _about(examiner, examiner.ask(3, "description", "open", slots, facts=facts), thing)
    kind = "any" if thing.is_present else "uncertain"
    turn.answer = examiner.say(turn, kind, {"described": thing.plain, **slots})


# ---- regions --------------------------------------------------------------------------------------------------------


def ask_about_zone(examiner: Examiner) -> None:
    """Whether one zone is clear, before any place is asked for; after that, places are only asked for openly."""
    draw, subject = examiner.draw, examiner.subject
    held = subject.held_zones()
    # Where something only may be, a zone is neither clear nor not.
    if not held or examiner.known_places or not all(thing.is_present for thing in subject.findings):
        return
    clear = subject.clear_zones()
    if not clear or not draw.chance(examiner.quotas.zones):
        return
    if draw.chance(0.5):
        zone = draw.pick(sorted(held))
    else:
        # A zone is asked about in vain as often as it is affected.
        zone = draw.weighted(clear, [examiner.survey.zones[zone] for zone in clear])
    inside = [thing for thing in subject.findings if thing.zones and zone in thing.zones]
    facts = [target("region", zone)]
    facts += [thing.truth for thing in inside]
    slots = {"the_region": f"the {zone}", "image": examiner.image(0)}
    turn = examiner.ask(3, "region content", "yes_no", slots, facts=facts)
    turn.images = (0,)
    turn.label = "yes" if inside else "no"
    slots["list"] = examiner.words.join([thing.a for thing in inside])
    turn.answer = examiner.say(turn, turn.label, slots)
    turn.evidence = marks_of(inside)
    examiner.places_told = True
    # Where the whole place of something is told, it is not asked for at all.
    examiner.known_places.update(thing.id for thing in inside if thing.zones == frozenset({zone}))


def ask_about_regions(examiner: Examiner) -> None:
    """What a named zone of the lungs holds; after every question that it could answer."""
    draw, subject = examiner.draw, examiner.subject
    held = subject.held_zones()
    if held is None:
        return
    told = {turn.slots["the_region"] for turn in examiner.turns if turn.task == "region content"}
    known = {*held, *subject.clear_zones()}
    fit = [zone for zone in ZONES if zone in known and f"the {zone}" not in told]
    for zone in draw.sample(fit, draw.rounded(examiner.quotas.regions)):
        inside = [thing for thing in subject.findings if thing.zones and zone in thing.zones]
        facts = [target("region", zone)]
        facts += [thing.truth for thing in inside]
        slots = {"the_region": f"the {zone}", "image": examiner.image(0)}
        turn = examiner.ask(3, "region content", "open", slots, facts=facts)
        turn.images = (0,)
        sure = [thing.a for thing in inside if thing.is_present]
        hedged = [thing.a for thing in inside if not thing.is_present]
        kind = "some" if sure else "possible" if hedged else "none"
        # Where nothing is sure, the sentence hedges, not the name.
        plain = [examiner.words.name(thing.name).a for thing in inside]
        slots |= {"list": examiner.words.join([*sure, *hedged]), "possible": examiner.words.join(plain)}
        turn.answer = examiner.say(turn, kind, slots)
        turn.evidence = marks_of(inside)

"""Stage 3, in words: where each finding and device lies, how severe it is, how it looks; and what a region holds.

An attribute is asked about once, in one form. A question that reveals several attributes (a description, the content of
a region, a vignette) comes after the questions that it would answer, or instead of them.
"""

from typing import Final

from carina.cases import Fact
from carina.studies.vocabulary import ZONES
from carina.trek.balance import WrongValues
from carina.trek.facts import attribute_row, measure_row, target_row
from carina.trek.stages.findings import add_none_option, sample_option_count
from carina.trek.subject import KINDS, Thing, cite_things, separate_zones
from carina.trek.turn import Choice, ConversationDraft, Turn

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
_PLACE_ATTRIBUTES: Final = ("side", "location", "position")
"""Attributes of place; each reveals the one before it."""
_SIDE_FIRST: Final = 0.2
"""Share of the findings whose side is asked for before their place; the place is then asked for in an open question."""
_BY_ZONES: Final = 0.75
"""Share of the closed questions about a place that ask for all its zones."""
_VIGNETTE_OPTIONS: Final = 5


def ask_attributes(draft: ConversationDraft) -> None:
    """Ask about every known attribute of every finding and device."""
    for thing in draft.subject.things:
        if not thing.alone:
            continue
        first = len(draft.turns)
        if not _ask_vignette(draft, thing):
            _ask_each(draft, thing)
        asked = draft.turns[first:]
        _ask_measure(draft, thing)
        _ask_description(draft, thing, asked)


def restate_presence(draft: ConversationDraft, turn: Turn, thing: Thing) -> Turn:
    """Mark a question that states a finding as present: it restates the key of an earlier question."""
    turn.restates = True
    turn.evidence = thing.marks
    settled = draft.presence.get(thing.id)
    if settled is not None:
        turn.depends = (settled,)
    return turn


# ---- one attribute --------------------------------------------------------------------------------------------------


def _ask_each(draft: ConversationDraft, thing: Thing) -> None:
    sampler = draft.sampler
    attributes = sampler.shuffle([name for name in thing.values if name not in _PLACE_ATTRIBUTES])
    placed = [name for name in _PLACE_ATTRIBUTES if name in thing.values]
    if "position" in placed and _ask_whether_placed(draft, thing):
        placed = []
    if "side" in placed and "location" in placed and not sampler.chance(_SIDE_FIRST):
        placed.remove("side")
    if thing.id not in draft.answered_places:
        cut = sampler.below(len(attributes) + 1)
        attributes = [*attributes[:cut], *placed, *attributes[cut:]]
    for attribute in attributes:
        if not sampler.chance(draft.quotas.attributes):
            continue
        if attribute == "position":
            _ask_position(draft, thing)
            continue
        form = sampler.pick_weighted(_FORMS, _SHARES)
        if form == "open" or not _ask_closed(draft, thing, attribute, form):
            _ask_open(draft, thing, attribute)
        if attribute == "side":
            draft.answered_sides.add(thing.id)


def _noun_phrase(thing: Thing, attribute: str) -> str:
    """The noun phrase for what has the attribute; the location of a device is that of its tip."""
    return thing.tip if attribute == "location" and thing.tip is not None else thing.the


def _attribute_facts(thing: Thing, attribute: str) -> list[Fact]:
    return [thing.target, attribute_row(attribute, thing.id, thing.values[attribute])]


def _ask_open(draft: ConversationDraft, thing: Thing, attribute: str) -> None:
    slots = {"the_finding": _noun_phrase(thing, attribute)}
    turn = restate_presence(
        draft,
        draft.add_question(3, attribute, "open", slots, facts=_attribute_facts(thing, attribute)),
        thing,
    )
    slots[_OPEN_SLOT[attribute]] = thing.values[attribute]
    turn.answer = draft.fill_answer(turn, "any", slots)


def _ask_closed(draft: ConversationDraft, thing: Thing, attribute: str, form: str) -> bool:
    """Ask in a form that offers a wrong value; False where the set has no wrong value for this one."""
    sampler = draft.sampler
    wrong = draft.survey.wrong.get((thing.calling, attribute))
    value = thing.values[attribute]
    if attribute in ("side", "location") and draft.has_place_answers:
        return False
    # Most wrong places are on the other side.
    if attribute == "location" and thing.id in draft.answered_sides:
        return False
    if attribute == "location" and thing.zones and sampler.chance(_BY_ZONES):
        return _ask_zones(draft, thing)
    if attribute == "side" and form == "statement":
        form = "choice"
    if wrong is None or value not in wrong.asked or not sampler.chance(wrong.asked[value]):
        return False
    if not sum(wrong.weights[value]):
        return False
    if form == "yes_no":
        _ask_yes_no(draft, thing, attribute, sampler.pick_weighted(wrong.values, wrong.weights[value]))
    elif form == "choice":
        _ask_choice(draft, thing, attribute, _sample_wrong_options(draft, wrong, value))
    else:
        _ask_statement(draft, thing, attribute, _sample_wrong_options(draft, wrong, value))
    return True


def _sample_wrong_options(draft: ConversationDraft, wrong: WrongValues, value: str) -> list[str]:
    """Wrong values such that no option is more likely to be right than another.

    For a pair of options, the weights ensure this. A longer list is drawn with equal probabilities and accepted with a
    probability that depends on its rarest value; otherwise guessing the most common value would do better than chance.
    """
    sampler = draft.sampler
    number = sample_option_count(draft) - 1
    fit = [text for text, weight in zip(wrong.values, wrong.weights[value], strict=True) if weight > 0]
    for length in range(min(number, len(fit)), 1, -1):
        drawn = sampler.sample(fit, length)
        apart = all(
            wrong.weights[one][wrong.values.index(other)] > 0
            for place, one in enumerate(drawn)
            for other in drawn[:place]
        )
        if apart:
            right, *others = [wrong.shares[wrong.values.index(text)] for text in (value, *drawn)]
            if sampler.chance(min(others) / right):
                return drawn
    return [sampler.pick_weighted(wrong.values, wrong.weights[value])]


def _ask_yes_no(draft: ConversationDraft, thing: Thing, attribute: str, other: str) -> None:
    said, right = _SLOT[attribute]
    true = draft.sampler.chance(0.5)
    value = thing.values[attribute] if true else other
    slots = {"the_finding": _noun_phrase(thing, attribute), said: value}
    turn = restate_presence(
        draft,
        draft.add_question(3, attribute, "yes_no", slots, facts=_attribute_facts(thing, attribute)),
        thing,
    )
    turn.label = "yes" if true else "no"
    slots[right] = thing.values[attribute]
    turn.answer = draft.fill_answer(turn, turn.label, slots)


def _ask_choice(draft: ConversationDraft, thing: Thing, attribute: str, wrong: list[str]) -> None:
    slots = {"the_finding": _noun_phrase(thing, attribute)}
    turn = restate_presence(
        draft,
        draft.add_question(3, attribute, "choice", slots, facts=_attribute_facts(thing, attribute)),
        thing,
    )
    turn.choices = add_none_option(
        draft, Choice(thing.values[attribute], right=True), [Choice(text) for text in wrong]
    )


def _ask_zones(draft: ConversationDraft, thing: Thing) -> bool:
    """Ask which zones a thing lies in; False where it leaves no zone that could be a wrong option."""
    sampler, held = draft.sampler, thing.zones
    if not held:
        return False
    right = sampler.sample([zone for zone in ZONES if zone in held], 2 + sampler.below(2))
    wrong = sampler.sample(separate_zones(held), 1 + sampler.below(3))
    if not (right and wrong):
        return False
    slots = {"the_finding": thing.the}
    facts = _attribute_facts(thing, "location")
    turn = restate_presence(
        draft, draft.add_question(3, "location", "choice/multiple", slots, facts=facts), thing
    )
    turn.multiple = True
    turn.choices = [*(Choice(zone, right=True) for zone in right), *(Choice(zone) for zone in wrong)]
    return True


def _ask_statement(draft: ConversationDraft, thing: Thing, attribute: str, wrong: list[str]) -> None:
    """Ask which statement about the attribute is right; the wrong ones state values of other findings or studies."""
    slots = {"the_finding": _noun_phrase(thing, attribute)}
    turn = restate_presence(
        draft,
        draft.add_question(3, "statement", "choice", slots, facts=_attribute_facts(thing, attribute)),
        thing,
    )
    texts = [thing.values[attribute], *wrong]
    slot = _OPEN_SLOT[attribute]
    said = [draft.fill_clause(3, "statement", attribute, slots={slot: text}) for text in texts]
    turn.choices = [Choice(text, right=number == 0) for number, text in enumerate(said)]


def _ask_whether_placed(draft: ConversationDraft, thing: Thing) -> bool:
    """Ask in a closed form whether a device lies correctly, instead of its place; False where that is not possible."""
    position, at = thing.values["position"], thing.values.get("location")
    known = draft.survey.wrong.get((thing.calling, "position"))
    if at is None or known is None or not draft.sampler.chance(0.5 * known.asked.get(position, 0.0)):
        return False
    variant = draft.sampler.pick(("yes_no", "choice"))
    slots = {"the_finding": thing.the, "at": at}
    facts = _attribute_facts(thing, "position")
    turn = restate_presence(draft, draft.add_question(3, "position", variant, slots, facts=facts), thing)
    adequate = position == "adequate"
    if variant == "choice":
        words = draft.words.wording.grammar["position"]
        turn.choices = [Choice(text, right=state == position) for state, text in words.items()]
    else:
        turn.label = "yes" if adequate else "no"
        turn.answer = draft.fill_answer(turn, turn.label, slots)
    return True


def _ask_position(draft: ConversationDraft, thing: Thing) -> None:
    """Ask in an open form whether a device lies correctly, after its place."""
    at = thing.values.get("location")
    if at is None:
        return
    slots = {"the_finding": thing.the, "at": at}
    turn = restate_presence(
        draft,
        draft.add_question(3, "position", "open", slots, facts=_attribute_facts(thing, "position")),
        thing,
    )
    turn.answer = draft.fill_answer(turn, thing.values["position"], slots)


# ---- several at once ------------------------------------------------------------------------------------------------


def _ask_vignette(draft: ConversationDraft, thing: Thing) -> bool:
    """Ask which description fits the indication, instead of asking for each attribute."""
    indication = draft.subject.indication
    if (
        not indication
        or thing.kind != "finding"
        or not thing.is_present
        or not draft.sampler.chance(draft.quotas.vignette)
    ):
        return False
    wrong = [text for text in draft.survey.descriptions.get(thing.name, ()) if text != thing.plain]
    place, grade = thing.means("location"), thing.values.get("severity")
    # Another description is wrong only where it contradicts this one: one with less detail would be right, too.
    wrong = [text for text in wrong if _excludes(draft.survey.stated_locations[text], place, grade)]
    if len(wrong) < _VIGNETTE_OPTIONS - 1 or thing.id in draft.answered_places or draft.has_place_answers:
        return False
    number = _VIGNETTE_OPTIONS + draft.sampler.below(2)
    facts = [thing.target]
    facts += [attribute_row(name, thing.id, value) for name, value in thing.values.items()]
    slots = {"indication": indication}
    turn = restate_presence(draft, draft.add_question(3, "vignette", "choice", slots, facts=facts), thing)
    turn.choices = [Choice(thing.plain, right=True)]
    turn.choices += [Choice(text) for text in draft.sampler.sample(wrong, number - 1)]
    return True


def _excludes(
    description: tuple[frozenset[str], str | None], place: frozenset[str], grade: str | None
) -> bool:
    elsewhere, other = description
    apart = bool(place) and bool(elsewhere) and not place & elsewhere
    return apart or (grade is not None and other is not None and grade != other)


def _ask_measure(draft: ConversationDraft, thing: Thing) -> None:
    measure = thing.measure
    if measure is None or not thing.is_present or not draft.sampler.chance(0.6):
        return
    quantity = draft.words.wording.common["quantity"].get(measure.name, measure.name)
    value = f"{measure.value:.2f}" if measure.unit == "1" else f"{measure.value:g} {measure.unit}"
    slots = {"the_finding": thing.the, "quantity": quantity}
    facts = [thing.target, measure_row(thing.id, measure.name, measure.value)]
    turn = restate_presence(draft, draft.add_question(3, "measure", "open", slots, facts=facts), thing)
    turn.answer = draft.fill_answer(turn, "any", {**slots, "value": value})


def _ask_description(draft: ConversationDraft, thing: Thing, asked: list[Turn]) -> None:
    if asked and not draft.sampler.chance(draft.quotas.described):
        return
    if (
        not thing.values
    ):  # a label, or a sentence that says nothing beyond the name: there is nothing to describe
        draft.leave_out("description", "only its name is known")
        return
    facts = [thing.target]
    facts += [attribute_row(name, thing.id, value) for name, value in thing.values.items()]
    slots = {"the_finding": thing.the}
    turn = restate_presence(draft, draft.add_question(3, "description", "open", slots, facts=facts), thing)
    kind = "any" if thing.is_present else "uncertain"
    turn.answer = draft.fill_answer(turn, kind, {"described": thing.plain, **slots})


# ---- regions --------------------------------------------------------------------------------------------------------


def ask_about_zone(draft: ConversationDraft) -> None:
    """Ask whether one zone is clear, before any place is asked for; later questions for places are open."""
    sampler, subject = draft.sampler, draft.subject
    held = subject.held_zones()
    # A zone that may hold an uncertain finding is neither clear nor affected.
    if not held or draft.answered_places or not all(thing.is_present for thing in subject.findings):
        return
    clear = subject.clear_zones()
    if not clear or not sampler.chance(draft.quotas.zones):
        return
    if sampler.chance(0.5):
        zone = sampler.pick(sorted(held))
    else:
        # A zone is asked about as often where it is clear as where it is affected.
        zone = sampler.pick_weighted(clear, [draft.survey.zones[zone] for zone in clear])
    inside = [thing for thing in subject.findings if thing.zones and zone in thing.zones]
    facts = [target_row("region", zone)]
    facts += [thing.truth for thing in inside]
    slots = {"the_region": f"the {zone}", "image": draft.image(0)}
    turn = draft.add_question(3, "region content", "yes_no", slots, facts=facts)
    turn.images = (0,)
    turn.label = "yes" if inside else "no"
    slots["list"] = draft.words.join([thing.a for thing in inside])
    turn.answer = draft.fill_answer(turn, turn.label, slots)
    turn.evidence = cite_things(inside)
    draft.has_place_answers = True
    # A place that the answer reveals completely is not asked for at all.
    draft.answered_places.update(thing.id for thing in inside if thing.zones == frozenset({zone}))


def ask_about_regions(draft: ConversationDraft) -> None:
    """Ask what a zone of the lungs holds, after every question that this could answer."""
    sampler, subject = draft.sampler, draft.subject
    held = subject.held_zones()
    if held is None:
        if subject.images[0].view in ("PA", "AP") and not subject.has_device:
            draft.is_complete("region content", *KINDS)
        return
    told = {turn.slots["the_region"] for turn in draft.turns if turn.task == "region content"}
    known = {*held, *subject.clear_zones()}
    fit = [zone for zone in ZONES if zone in known and f"the {zone}" not in told]
    for zone in sampler.sample(fit, sampler.round_randomly(draft.quotas.regions)):
        inside = [thing for thing in subject.findings if thing.zones and zone in thing.zones]
        facts = [target_row("region", zone)]
        facts += [thing.truth for thing in inside]
        slots = {"the_region": f"the {zone}", "image": draft.image(0)}
        turn = draft.add_question(3, "region content", "open", slots, facts=facts)
        turn.images = (0,)
        sure = [thing.a for thing in inside if thing.is_present]
        hedged = [thing.a for thing in inside if not thing.is_present]
        kind = "some" if sure else "possible" if hedged else "none"
        # Where all findings are uncertain, the sentence says so, not the names.
        plain = [draft.words.name(thing.name).a for thing in inside]
        slots |= {"list": draft.words.join([*sure, *hedged]), "possible": draft.words.join(plain)}
        turn.answer = draft.fill_answer(turn, kind, slots)
        turn.evidence = cite_things(inside)

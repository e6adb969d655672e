"""Stage 1: which projections these are, and whether they can be read."""

from collections.abc import Sequence
from typing import Final

from carina.studies.model import Quality
from carina.trek.records import fact, target
from carina.trek.turn import Choice, Examiner

_VIEWS: Final = ("PA", "AP", "lateral")
_CHOICES: Final = 0.3
"""Share of these questions that give options."""
_COUNTS: Final = ("no", "one", "two")


def ask_about_images(examiner: Examiner) -> None:
    """Projection and technical adequacy, where the study states them."""
    known = all(image.view != "unknown" for image in examiner.subject.images)
    criteria = _criteria(examiner.subject.images[0].quality)
    # What is known of the two is asked about in one question at least.
    asks_view = known and (not criteria or examiner.draw.chance(examiner.quotas.view))
    least = examiner.quotas.quality if asks_view else 1.0
    if asks_view:
        _ask_view(examiner)
    if criteria and examiner.draw.chance(least):
        _ask_quality(examiner, criteria)


def _ask_view(examiner: Examiner) -> None:
    draw, images = examiner.draw, examiner.subject.images
    views = [image.view for image in images]
    facts = [target("view", ", ".join(views)), fact("view", "", ", ".join(views))]
    if draw.chance(_CHOICES):
        turn = examiner.ask(1, "view", "choice", facts=facts)
        right = _spoken(examiner, views)
        others = [[view] for view in _VIEWS] + [["PA", "lateral"], ["AP", "lateral"]]
        wrong = [other for other in others if other != views and len(other) == len(views)] or others
        turn.choices = [Choice(right, right=True)]
        turn.choices += [
            Choice(_spoken(examiner, other)) for other in draw.sample(wrong, 2) if other != views
        ]
    else:
        turn = examiner.ask(1, "view", "open", facts=facts)
        kind = "one" if len(views) == 1 else "several"
        slots = {"views": _phrase(examiner, views), "count": _COUNTS[len(views)]}
        turn.answer = examiner.say(turn, kind, slots)


def _spoken(examiner: Examiner, views: Sequence[str]) -> str:
    spoken = examiner.words.wording.common["view"]
    return examiner.words.join([spoken[view][0] for view in views])


def _phrase(examiner: Examiner, views: Sequence[str]) -> str:
    spoken = examiner.words.wording.common["view"]
    names = [examiner.draw.pick(spoken[view]) for view in views]
    if len(names) == 1:
        article = "an" if names[0][:1] in "aeiouAEIO" else "a"
        return f"{article} {names[0]} view"
    return f"{examiner.words.join(names)} views"


def _criteria(quality: Quality | None) -> list[tuple[str, str, str]]:
    """Criterion, what it is like, and the parts that are missing; of those that are known."""
    if quality is None:
        return []
    criteria: list[tuple[str, str, str]] = []
    if quality.rotation is not None:
        criteria.append(("rotation", quality.rotation, ""))
    if quality.inspiration is not None:
        criteria.append(("inspiration", quality.inspiration, ""))
    if quality.exposure is not None:
        criteria.append(("exposure", quality.exposure, ""))
    if quality.cut_off is not None:
        parts = " and the ".join(quality.cut_off)
        criteria.append(
            ("coverage", "cut_off" if quality.cut_off else "complete", f"the {parts}" if parts else "")
        )
    return criteria


_GOOD: Final = {"rotation": "none", "inspiration": "adequate", "exposure": "adequate", "coverage": "complete"}


def _ask_quality(examiner: Examiner, stated: list[tuple[str, str, str]]) -> None:
    """About the first image, the frontal one where there is one: each image has a quality of its own."""
    draw = examiner.draw
    criteria = {name: (state, parts) for name, state, parts in stated}
    facts = [target("quality", "technical adequacy")]
    facts += [fact("quality", name, state) for name, (state, _) in criteria.items()]
    if draw.chance(_CHOICES) and len(criteria) > 1:
        turn = examiner.ask(1, "quality", "choice", {"images": examiner.image(0)}, facts=facts)
        turn.images = (0,)
        name = draw.pick(sorted(criteria))
        state, parts = criteria[name]
        states = examiner.words.wording.phrases[1][name]
        turn.choices = [Choice(_clause(examiner, name, state, parts), right=True)]
        wrong = [other for other in sorted(states) if other not in (state, "cut_off")]
        turn.choices += [Choice(_clause(examiner, name, other, "")) for other in wrong]
        if len(turn.choices) == 1:
            turn.choices.append(Choice(_clause(examiner, name, "cut_off", "the right lung apex")))
        return
    turn = examiner.ask(1, "quality", "open", {"images": examiner.image(0)}, facts=facts)
    turn.images = (0,)
    clauses = [_clause(examiner, name, state, parts) for name, (state, parts) in criteria.items()]
    adequate = all(_GOOD[name] == state for name, (state, _) in criteria.items())
    view = examiner.subject.images[0].view
    slots = {
        "criteria": examiner.words.join(clauses),
        "overall": _clause(examiner, "overall", "adequate" if adequate else "limited", ""),
        "views": examiner.image(0) if view == "unknown" else _phrase(examiner, [view]),
    }
    turn.answer = examiner.say(turn, "any", slots)


def _clause(examiner: Examiner, name: str, state: str, parts: str) -> str:
    return examiner.clause(1, name, state, slots={"parts": parts})

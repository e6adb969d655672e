"""Stage 1: projections of the images, and their technical quality."""

from collections.abc import Sequence
from typing import Final

from carina.studies.model import Quality
from carina.trek.facts import quality_row, target_row, view_row
from carina.trek.turn import Choice, ConversationDraft

_VIEWS: Final = ("PA", "AP", "lateral")
_CHOICES: Final = 0.3
"""Share of these questions that give options."""
_COUNTS: Final = ("no", "one", "two")


def ask_image_quality(draft: ConversationDraft) -> None:
    """Ask about projection and technical adequacy, where the study states them."""
    known = all(image.view != "unknown" for image in draft.subject.images)
    criteria = _list_criteria(draft.subject.images[0].quality)
    # At least one of the two is asked about, where the study states it.
    asks_view = known and (not criteria or draft.sampler.chance(draft.quotas.view))
    least = draft.quotas.quality if asks_view else 1.0
    if asks_view:
        _ask_view(draft)
    if criteria and draft.sampler.chance(least):
        _ask_quality(draft, criteria)


def _ask_view(draft: ConversationDraft) -> None:
    sampler, images = draft.sampler, draft.subject.images
    views = [image.view for image in images]
    facts = [target_row("view", ", ".join(views)), view_row(", ".join(views))]
    if sampler.chance(_CHOICES):
        turn = draft.add_question(1, "view", "choice", facts=facts)
        right = _join_views(draft, views)
        others = [[view] for view in _VIEWS] + [["PA", "lateral"], ["AP", "lateral"]]
        wrong = [other for other in others if other != views and len(other) == len(views)] or others
        turn.choices = [Choice(right, right=True)]
        turn.choices += [
            Choice(_join_views(draft, other)) for other in sampler.sample(wrong, 2) if other != views
        ]
    else:
        turn = draft.add_question(1, "view", "open", facts=facts)
        kind = "one" if len(views) == 1 else "several"
        slots = {"views": _views_phrase(draft, views), "count": _COUNTS[len(views)]}
        turn.answer = draft.fill_answer(turn, kind, slots)


def _join_views(draft: ConversationDraft, views: Sequence[str]) -> str:
    spoken = draft.words.wording.common["view"]
    return draft.words.join([spoken[view][0] for view in views])


def _views_phrase(draft: ConversationDraft, views: Sequence[str]) -> str:
    spoken = draft.words.wording.common["view"]
    names = [draft.sampler.pick(spoken[view]) for view in views]
    if len(names) == 1:
        article = "an" if names[0][:1] in "aeiouAEIO" else "a"
        return f"{article} {names[0]} view"
    return f"{draft.words.join(names)} views"


def _list_criteria(quality: Quality | None) -> list[tuple[str, str, str]]:
    """Known criteria of quality: name, state, and the parts that are not covered."""
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


def _ask_quality(draft: ConversationDraft, stated: list[tuple[str, str, str]]) -> None:
    """Ask about the quality of the first image, which is frontal where the study has a frontal image."""
    sampler = draft.sampler
    criteria = {name: (state, parts) for name, state, parts in stated}
    facts = [target_row("quality", "technical adequacy")]
    facts += [quality_row(name, state) for name, (state, _) in criteria.items()]
    if sampler.chance(_CHOICES) and len(criteria) > 1:
        turn = draft.add_question(1, "quality", "choice", {"images": draft.image(0)}, facts=facts)
        turn.images = (0,)
        name = sampler.pick(sorted(criteria))
        state, parts = criteria[name]
        states = draft.words.wording.phrases[1][name]
        turn.choices = [Choice(_quality_clause(draft, name, state, parts), right=True)]
        wrong = [other for other in sorted(states) if other not in (state, "cut_off")]
        turn.choices += [Choice(_quality_clause(draft, name, other, "")) for other in wrong]
        if len(turn.choices) == 1:
            turn.choices.append(Choice(_quality_clause(draft, name, "cut_off", "the right lung apex")))
        return
    turn = draft.add_question(1, "quality", "open", {"images": draft.image(0)}, facts=facts)
    turn.images = (0,)
    clauses = [_quality_clause(draft, name, state, parts) for name, (state, parts) in criteria.items()]
    adequate = all(_GOOD[name] == state for name, (state, _) in criteria.items())
    view = draft.subject.images[0].view
    slots = {
        "criteria": draft.words.join(clauses),
        "overall": _quality_clause(draft, "overall", "adequate" if adequate else "limited", ""),
        "views": draft.image(0) if view == "unknown" else _views_phrase(draft, [view]),
    }
    turn.answer = draft.fill_answer(turn, "any", slots)


def _quality_clause(draft: ConversationDraft, name: str, state: str, parts: str) -> str:
    return draft.fill_clause(1, name, state, slots={"parts": parts})

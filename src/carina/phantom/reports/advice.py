"""Recommendations: what is due because of what, and the sentences that say so."""

from collections.abc import Iterator

from carina.phantom.reports.body import is_there, say_slots
from carina.phantom.reports.grammar import join
from carina.phantom.reports.line import Line, line
from carina.phantom.reports.mentions import Context, mention
from carina.phantom.reports.template import Said, Slots
from carina.studies.model import Device, Finding, Recommendation, Statement

ORDER = (
    "urgent clinical attention",
    "reposition device",
    "chest CT",
    "follow-up radiograph",
    "lateral view",
    "clinical correlation",
)
"""Actions, most urgent first."""


def recommend(context: Context) -> tuple[tuple[Recommendation, ...], list[Line]]:
    """The recommendations that are due, with one sentence each."""
    due: dict[str, list[Finding | Device]] = {}
    for thing, action in _actions(context):
        due.setdefault(action, []).append(thing)
    recommendations: list[Recommendation] = []
    lines: list[Line] = []
    for action in ORDER:
        if action in due:
            about = tuple(thing.id for thing in due[action])
            recommendation = Recommendation(id=f"r{len(recommendations) + 1}", action=action, about=about)
            recommendations.append(recommendation)
            lines.append(line(_say(context, recommendation, due[action])))
    return tuple(recommendations), lines


def _actions(context: Context) -> Iterator[tuple[Finding | Device, str]]:
    for device in context.study.devices:
        if is_there(device) and device.position == "malpositioned":
            yield device, "reposition device"
    for finding in context.study.findings:
        if not is_there(finding):
            continue
        if finding.name == "pneumothorax" and "tension" in finding.appearance:
            yield finding, "urgent clinical attention"
        elif finding.name == "nodule" and "calcified" in finding.appearance:
            continue  # A granuloma: nothing is due.
        elif finding.name in ("nodule", "mass"):
            yield finding, "chest CT"
        elif finding.name in ("pneumonia", "consolidation") and finding.certainty == "present":
            yield finding, "follow-up radiograph"
        elif finding.certainty == "uncertain":
            if context.draw.chance(0.5):
                yield finding, _clarification(context)
        elif finding.name == "pneumothorax" and finding.severity == "severe":
            yield finding, "urgent clinical attention"


def _clarification(context: Context) -> str:
    """What would settle an uncertain finding; a lateral view only where there is none yet."""
    weights = {"lateral view": 1.0, "chest CT": 0.5, "clinical correlation": 1.0}
    if any(image.view == "lateral" for image in context.study.images):
        del weights["lateral view"]
    return context.draw.weighted(weights)


def _say(context: Context, recommendation: Recommendation, things: list[Finding | Device]) -> Said:
    named = [mention(context, thing).slots.fill["the"]() for thing in things]
    text = join([said.text for said in named], context.language.common.conjunctions["and"])
    states = tuple(state for said in named for state in said.states)
    base = (Statement(kind="recommendation", about=recommendation.id),)
    frames = context.language.words.recommendations[recommendation.action]
    return say_slots(context, frames, Slots(fill={"target": lambda: Said(text, states)}, base=base))

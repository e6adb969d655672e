"""Negatives: what a radiologist would say is not there, alone, in lists, or as a normal organ."""

from collections.abc import Iterator, Sequence

from carina.phantom.reports.body import is_gone, is_there, say_slots
from carina.phantom.reports.grammar import join
from carina.phantom.reports.line import Line, Organ, Style, line
from carina.phantom.reports.mentions import Context, mention
from carina.phantom.reports.template import Said, Slots, render
from carina.phantom.reports.wording import Panel
from carina.studies.model import Finding, Statement

LUNG = ("consolidation", "edema", "pneumonia", "lung opacity", "atelectasis", "nodule", "mass")
PLEURA = ("pleural effusion", "pneumothorax")
USUAL = ("consolidation", *PLEURA)
"""What every reader looks for: denied before anything else is."""
RARE = frozenset({"nodule", "mass", "atelectasis", "lung opacity", "fracture"})
"""What nobody denies alone."""

CLASHES: dict[str, tuple[str, ...]] = {
    "pneumonia": ("consolidation", "lung opacity"),
    "consolidation": ("lung opacity", "pneumonia"),
    "lung opacity": ("consolidation", "pneumonia"),
    "edema": ("lung opacity", "consolidation"),
    "atelectasis": ("lung opacity",),
    "mass": ("nodule", "lung opacity"),
    "nodule": ("mass", "lung opacity"),
}
"""What is not denied beside a finding: absent by name, but to a reader the same shadow."""


class Deniable:
    """The absent findings that may be denied, by name."""

    def __init__(self, context: Context) -> None:
        findings = context.study.findings
        there = {finding.name for finding in findings if is_there(finding)}
        clashing = {clash for name in there for clash in CLASHES.get(name, ())}
        self._absent = {
            finding.name: finding
            for finding in findings
            if finding.certainty == "absent" and finding.name not in there | clashing
        }
        self.clear_lungs = not any(is_there(finding) and _hides_lung(finding) for finding in findings)
        """Whether nothing lies over or beside the lungs that forbids to call them clear."""
        self._resolved = {finding.name for finding in findings if is_gone(finding)}

    def all_of(self, names: Sequence[str]) -> bool:
        return all(name in self._absent for name in names)

    def among(self, names: Sequence[str]) -> list[str]:
        """Names to deny in a list; a resolved finding has its own sentence instead."""
        return [name for name in names if name in self._absent and name not in self._resolved]

    def finding(self, name: str) -> Finding:
        return self._absent[name]

    def states(self, names: Sequence[str]) -> tuple[Statement, ...]:
        return tuple(
            Statement(kind="finding", about=self._absent[name].id, certainty="absent") for name in names
        )


def _hides_lung(finding: Finding) -> bool:
    """Air or more than a little fluid beside the lung: not the picture of clear lungs."""
    return finding.name == "pneumothorax" or (
        finding.name == "pleural effusion" and finding.severity != "mild"
    )


def deny(context: Context, style: Style) -> Iterator[Line]:
    """Negatives for the findings section; a template leaves no organ without a word."""
    deniable = Deniable(context)
    lines = list(_deny(context, deniable, style))
    names = {finding.id: finding.name for finding in context.study.findings}
    denied = {names[state.about] for each in lines for state in each.states}
    usual = deniable.among(USUAL)
    if usual and denied & RARE and not denied & set(USUAL):
        yield line(say_list(context, deniable, usual), "lungs" if usual[0] in LUNG else "pleura")
    yield from lines


def _deny(context: Context, deniable: Deniable, style: Style) -> Iterator[Line]:
    always = style == "template"
    if not always and context.draw.chance(0.3):
        mixed = _mixed(context, deniable)
        if len(mixed) >= 2:
            yield line(say_list(context, deniable, mixed), "lungs" if mixed[0] in LUNG else "pleura")
            yield from _heart_and_bones(context, deniable, style)
            return
    yield from _lungs(context, deniable, always=always)
    yield from _pleura(context, deniable, always=always)
    yield from _heart_and_bones(context, deniable, style)


def _mixed(context: Context, deniable: Deniable) -> list[str]:
    """Lung and pleura in one list: "no focal consolidation, pleural effusion, or pneumothorax"."""
    common = deniable.among(LUNG[:1])
    lungs = common if common and context.draw.chance(0.7) else context.draw.some(deniable.among(LUNG[:3]), 1)
    return lungs + deniable.among(PLEURA)


def _lungs(context: Context, deniable: Deniable, *, always: bool) -> Iterator[Line]:
    draw, words = context.draw, context.language.words
    clear = deniable.all_of(words.denials.lungs.denies)
    if clear and deniable.clear_lungs and draw.chance(0.7):
        yield line(say_panel(context, deniable, words.denials.lungs), "lungs")
        if draw.chance(0.85):
            return
    names = deniable.among(LUNG)
    if names and (always or clear or draw.chance(0.55)):
        if "edema" in names and draw.chance(0.25):
            yield line(_say_normal(context, deniable, "edema"), "lungs")
            names.remove("edema")
        chosen = _lung_names(context, names)
        if chosen:
            yield line(say_list(context, deniable, chosen), "lungs")


def _lung_names(context: Context, names: list[str]) -> list[str]:
    """Some of the names, the usual one first; rare ones not alone."""
    draw = context.draw
    chosen = draw.some(names, draw.pick((1, 1, 2, 2, 3)))
    lead = next((name for name in ("consolidation", "edema", "pneumonia") if name in names), None)
    if lead is not None and set(chosen) <= RARE:
        return [lead, *chosen[1:]]
    return chosen


def _pleura(context: Context, deniable: Deniable, *, always: bool) -> Iterator[Line]:
    draw, panels = context.draw, context.language.words.denials
    names = deniable.among(PLEURA)
    if not names or not (always or draw.chance(0.9)):
        return
    if len(names) == 2:
        kind = draw.weighted({"list": 0.6, "pair": 0.1, "panel": 0.15, "apart": 0.15})
        if kind == "panel":
            yield line(say_panel(context, deniable, panels.pleura), "pleura")
            return
        if kind == "pair":
            yield line(_say_pair(context, deniable, names), "pleura")
            return
        if kind == "list":
            order = names if draw.chance(0.5) else names[::-1]
            yield line(say_list(context, deniable, order), "pleura")
            return
    for name in names:
        yield line(_say_pleural(context, deniable, name), "pleura")


def _say_pleural(context: Context, deniable: Deniable, name: str) -> Said:
    complete = all(not image.quality or not image.quality.cut_off for image in context.study.images)
    if name == "pleural effusion" and complete and context.draw.chance(0.3):
        return say_panel(context, deniable, context.language.words.denials.angles)
    if context.language.words.findings[name].normal and context.draw.chance(0.4):
        return _say_normal(context, deniable, name)
    return say_list(context, deniable, [name])


def _heart_and_bones(context: Context, deniable: Deniable, style: Style) -> Iterator[Line]:
    chances: dict[str, tuple[Organ, float]] = {
        "cardiomegaly": ("heart", 0.85),
        "fracture": ("bones", 0.45 if style == "prose" else 0.3),
    }
    for name, (organ, chance) in chances.items():
        if deniable.among([name]) and (style == "template" or context.draw.chance(chance)):
            if context.draw.chance(0.8):
                yield line(_say_normal(context, deniable, name), organ)
            else:
                yield line(say_list(context, deniable, [name]), organ)


def say_list(context: Context, deniable: Deniable, names: Sequence[str]) -> Said:
    """ "No a, b, or c."."""
    words = context.language.words
    nouns = [context.draw.pick(words.findings[name].denied) for name in names]
    text = join(nouns, context.language.common.conjunctions["or"])
    states = deniable.states(names)
    return say_slots(context, words.denials.lists, Slots(fill={"list": lambda: Said(text, states)}))


def _say_pair(context: Context, deniable: Deniable, names: Sequence[str]) -> Said:
    words = context.language.words
    first, second = (context.draw.pick(words.findings[name].denied) for name in names)
    fill = {"first": lambda: Said(first), "second": lambda: Said(second)}
    return say_slots(context, words.denials.pairs, Slots(fill=fill, base=deniable.states(names)))


def say_panel(context: Context, deniable: Deniable, panel: Panel) -> Said:
    return say_slots(context, panel.frames, Slots(fill={}, base=deniable.states(panel.denies)))


def _say_normal(context: Context, deniable: Deniable, name: str) -> Said:
    frames = context.language.words.findings[name].normal
    slots = mention(context, deniable.finding(name)).slots
    frame = context.draw.frame(frames, slots)
    return say_list(context, deniable, [name]) if frame is None else render(frame, slots, context.draw)

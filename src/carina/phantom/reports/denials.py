"""Negative statements: findings that a radiologist reports as absent, alone, in lists, or as a normal organ."""

from collections.abc import Iterator, Sequence

from carina.phantom.reports.findings_section import is_absent, is_resolved, write_from_slots
from carina.phantom.reports.grammar import join_items
from carina.phantom.reports.layout import DraftSentence, Organ, Style, make_sentence
from carina.phantom.reports.mentions import ReportContext, make_mention
from carina.phantom.reports.template import Phrase, Slots, render_template
from carina.phantom.reports.wording import JointDenial
from carina.studies.model import Finding, Statement

LUNG = ("consolidation", "edema", "pneumonia", "lung opacity", "atelectasis", "nodule", "mass")
PLEURA = ("pleural effusion", "pneumothorax")
COMMON_NEGATIVES = ("consolidation", *PLEURA)
"""Findings that are denied before any rare one."""
RARE_NEGATIVES = frozenset({"nodule", "mass", "atelectasis", "lung opacity", "fracture"})
"""Findings that are not denied alone."""

LOOKALIKES: dict[str, tuple[str, ...]] = {
    "pneumonia": ("consolidation", "lung opacity"),
    "consolidation": ("lung opacity", "pneumonia"),
    "lung opacity": ("consolidation", "pneumonia"),
    "edema": ("lung opacity", "consolidation"),
    "atelectasis": ("lung opacity",),
    "mass": ("nodule", "lung opacity"),
    "nodule": ("mass", "lung opacity"),
}
"""Absent findings that are not denied next to a finding, because they look the same in an image."""


class AbsentFindings:
    """The absent findings that a report may deny, by name."""

    def __init__(self, context: ReportContext) -> None:
        findings = context.study.findings
        described = {finding.name for finding in findings if not is_absent(finding)}
        lookalikes = {other for name in described for other in LOOKALIKES.get(name, ())}
        self._absent = {
            finding.name: finding
            for finding in findings
            if finding.certainty == "absent" and finding.name not in described | lookalikes
        }
        self.has_clear_lungs = not any(
            not is_absent(finding) and _is_hiding_lung(finding) for finding in findings
        )
        """Whether no pleural finding prevents calling the lungs clear."""
        self._resolved = {finding.name for finding in findings if is_resolved(finding)}

    def has_all(self, names: Sequence[str]) -> bool:
        return all(name in self._absent for name in names)

    def select(self, names: Sequence[str]) -> list[str]:
        """The names that a list may deny; a resolved finding has its own sentence instead."""
        return [name for name in names if name in self._absent and name not in self._resolved]

    def finding(self, name: str) -> Finding:
        return self._absent[name]

    def make_statements(self, names: Sequence[str]) -> tuple[Statement, ...]:
        return tuple(
            Statement(kind="finding", about=self._absent[name].id, certainty="absent") for name in names
        )


def _is_hiding_lung(finding: Finding) -> bool:
    """Whether a pneumothorax, or an effusion that is not mild, covers the lung."""
    return finding.name == "pneumothorax" or (
        finding.name == "pleural effusion" and finding.severity != "mild"
    )


def write_denials(context: ReportContext, style: Style) -> Iterator[DraftSentence]:
    """Write negative statements for the findings section; a structured report has one for every normal organ."""
    absent = AbsentFindings(context)
    sentences = list(_write_organ_denials(context, absent, style))
    names = {finding.id: finding.name for finding in context.study.findings}
    denied = {names[statement.about] for each in sentences for statement in each.statements}
    usual = absent.select(COMMON_NEGATIVES)
    if usual and denied & RARE_NEGATIVES and not denied & set(COMMON_NEGATIVES):
        yield make_sentence(
            write_denial_list(context, absent, usual), "lungs" if usual[0] in LUNG else "pleura"
        )
    yield from sentences


def _write_organ_denials(
    context: ReportContext, absent: AbsentFindings, style: Style
) -> Iterator[DraftSentence]:
    is_structured = style == "structured"
    if not is_structured and context.sampler.bernoulli(0.3):
        mixed = _select_mixed_names(context, absent)
        if len(mixed) >= 2:
            yield make_sentence(
                write_denial_list(context, absent, mixed), "lungs" if mixed[0] in LUNG else "pleura"
            )
            yield from _deny_heart_and_bones(context, absent, style)
            return
    yield from _deny_lungs(context, absent, is_structured=is_structured)
    yield from _deny_pleura(context, absent, is_structured=is_structured)
    yield from _deny_heart_and_bones(context, absent, style)


def _select_mixed_names(context: ReportContext, absent: AbsentFindings) -> list[str]:
    """Names of lung and pleura for one list: "no focal consolidation, pleural effusion, or pneumothorax"."""
    common = absent.select(LUNG[:1])
    lungs = (
        common
        if common and context.sampler.bernoulli(0.7)
        else context.sampler.pick_several(absent.select(LUNG[:3]), 1)
    )
    return lungs + absent.select(PLEURA)


def _deny_lungs(
    context: ReportContext, absent: AbsentFindings, *, is_structured: bool
) -> Iterator[DraftSentence]:
    sampler, words = context.sampler, context.language.words
    clear = absent.has_all(words.denials.lungs.denies)
    if clear and absent.has_clear_lungs and sampler.bernoulli(0.7):
        yield make_sentence(write_joint_denial(context, absent, words.denials.lungs), "lungs")
        if sampler.bernoulli(0.85):
            return
    names = absent.select(LUNG)
    if names and (is_structured or clear or sampler.bernoulli(0.55)):
        if "edema" in names and sampler.bernoulli(0.25):
            yield make_sentence(_write_normal_organ(context, absent, "edema"), "lungs")
            names.remove("edema")
        chosen = _select_lung_names(context, names)
        if chosen:
            yield make_sentence(write_denial_list(context, absent, chosen), "lungs")


def _select_lung_names(context: ReportContext, names: list[str]) -> list[str]:
    """Some of the names; rare ones not alone."""
    sampler = context.sampler
    chosen = sampler.pick_several(names, sampler.pick((1, 1, 2, 2, 3)))
    lead = next((name for name in ("consolidation", "edema", "pneumonia") if name in names), None)
    if lead is not None and set(chosen) <= RARE_NEGATIVES:
        return [lead, *chosen[1:]]
    return chosen


def _deny_pleura(
    context: ReportContext, absent: AbsentFindings, *, is_structured: bool
) -> Iterator[DraftSentence]:
    sampler, denials = context.sampler, context.language.words.denials
    names = absent.select(PLEURA)
    if not names or not (is_structured or sampler.bernoulli(0.9)):
        return
    if len(names) == 2:
        kind = sampler.pick_weighted({"list": 0.6, "pair": 0.1, "joint": 0.15, "separate": 0.15})
        if kind == "joint":
            yield make_sentence(write_joint_denial(context, absent, denials.pleura), "pleura")
            return
        if kind == "pair":
            yield make_sentence(_write_denial_pair(context, absent, names), "pleura")
            return
        if kind == "list":
            order = names if sampler.bernoulli(0.5) else names[::-1]
            yield make_sentence(write_denial_list(context, absent, order), "pleura")
            return
    for name in names:
        yield make_sentence(_write_pleural_denial(context, absent, name), "pleura")


def _write_pleural_denial(context: ReportContext, absent: AbsentFindings, name: str) -> Phrase:
    complete = all(not image.quality or not image.quality.cut_off for image in context.study.images)
    if name == "pleural effusion" and complete and context.sampler.bernoulli(0.3):
        return write_joint_denial(context, absent, context.language.words.denials.angles)
    if context.language.words.findings[name].normal and context.sampler.bernoulli(0.4):
        return _write_normal_organ(context, absent, name)
    return write_denial_list(context, absent, [name])


def _deny_heart_and_bones(
    context: ReportContext, absent: AbsentFindings, style: Style
) -> Iterator[DraftSentence]:
    probabilities: dict[str, tuple[Organ, float]] = {
        "cardiomegaly": ("heart", 0.85),
        "fracture": ("bones", 0.45 if style == "prose" else 0.3),
    }
    for name, (organ, probability) in probabilities.items():
        if absent.select([name]) and (style == "structured" or context.sampler.bernoulli(probability)):
            if context.sampler.bernoulli(0.8):
                yield make_sentence(_write_normal_organ(context, absent, name), organ)
            else:
                yield make_sentence(write_denial_list(context, absent, [name]), organ)


def write_denial_list(context: ReportContext, absent: AbsentFindings, names: Sequence[str]) -> Phrase:
    """Write "No a, b, or c."."""
    words = context.language.words
    nouns = [context.sampler.pick(words.findings[name].denied) for name in names]
    text = join_items(nouns, context.language.common.conjunctions["or"])
    statements = absent.make_statements(names)
    return write_from_slots(
        context, words.denials.lists, Slots(fillers={"list": lambda: Phrase(text, statements)})
    )


def _write_denial_pair(context: ReportContext, absent: AbsentFindings, names: Sequence[str]) -> Phrase:
    words = context.language.words
    first, second = (context.sampler.pick(words.findings[name].denied) for name in names)
    fillers = {"first": lambda: Phrase(first), "second": lambda: Phrase(second)}
    return write_from_slots(
        context, words.denials.pairs, Slots(fillers=fillers, base=absent.make_statements(names))
    )


def write_joint_denial(context: ReportContext, absent: AbsentFindings, joint_denial: JointDenial) -> Phrase:
    return write_from_slots(
        context, joint_denial.templates, Slots(base=absent.make_statements(joint_denial.denies))
    )


def _write_normal_organ(context: ReportContext, absent: AbsentFindings, name: str) -> Phrase:
    templates = context.language.words.findings[name].normal
    slots = make_mention(context, absent.finding(name)).slots
    template = context.sampler.pick_template(templates, slots)
    return (
        write_denial_list(context, absent, [name])
        if template is None
        else render_template(template, slots, context.sampler)
    )

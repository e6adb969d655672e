"""The prompt for one report: the names that the model may use, the JSON it must reply with, the numbered sentences."""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, Final, get_args

import yaml

from carina.models.served import Prompt, Sampling
from carina.reports import lexicon
from carina.reports.observations import STATING_SECTIONS
from carina.studies.model import Report, Sentence
from carina.studies.vocabulary import RELATIONS, ZONES, Certainty, Distribution, Severity, Side, Trend

SAMPLING: Final = Sampling(max_tokens=4096)
_SYSTEM: Final = """\
You read radiology reports of the chest and write down what they state, as JSON and nothing else.

Layout, all four lists always there:
{{"findings": [{{"id": "f1", "name": ..., "certainty": ..., "sentences": [...], "side": ..., "zones": [...], \
"site": ..., "severity": ..., "distribution": ..., "trend": ..., "appearance": [...]}}],
"devices": [{{"id": "d1", "name": ..., "certainty": ..., "sentences": [...], "side": ..., "position": ..., \
"site": ..., "trend": ...}}],
"relations": [{{"subject": "f1", "kind": ..., "object": "f2", "sentences": [...]}}],
"recommendations": [{{"action": ..., "about": ["f1"], "sentences": [...]}}]}}

Values:
- name of a finding: {findings}
- name of a device: {devices}
- certainty: {certainty}; uncertain where the report hedges, absent where it denies. Never turn a hedge into a denial.
- sentences: numbers of the sentences that state the fact; at least one, and each must name it
- side: {side}
- zones: {zones}
- severity: {severity}
- distribution: {distribution}
- trend: {trend}, against an earlier study; resolved goes with certainty absent
- appearance: {looks}
- position: adequate, malpositioned
- site: words of the sentence itself that say where, such as "4.1 cm above the carina"
- kind of a relation: {relations}
- action: {actions}
Leave out what the report does not say. One entry for one thing, also where several sentences speak of it. Only what
is there now counts: no history, no reason for the examination."""


def make_prompt(report: Report) -> Prompt | None:
    """Prompt with the sentences that may state a fact, each with its number; None where the report has none."""
    lines = [
        f"[{number}] ({sentence.section}) {' '.join(report.quote(sentence).split())}"
        for number, sentence in stating_sentences(report).items()
    ]
    return Prompt(system=instructions(), user="\n".join(lines)) if lines else None


def stating_sentences(report: Report) -> dict[int, Sentence]:
    """Sentences of the sections that state findings, by their index in the report."""
    numbered = enumerate(report.sentences)
    return {number: sentence for number, sentence in numbered if sentence.section in STATING_SECTIONS}


@cache
def instructions() -> str:
    """System prompt: the same for every report, so that a service can cache it."""
    actions = _read_lexicon_file("actions")["actions"]
    return _SYSTEM.format(
        findings=_join_names(name for name in _read_lexicon_file("findings") if name != "none"),
        devices=_join_names(_read_lexicon_file("devices")),
        certainty=_join_names(get_args(Certainty)),
        side=_join_names(get_args(Side)),
        zones=_join_names(ZONES),
        severity=_join_names(get_args(Severity)),
        distribution=_join_names(get_args(Distribution)),
        trend=_join_names(get_args(Trend)),
        looks=_join_names(_read_lexicon_file("cues")["looks"]),
        relations=_join_names(RELATIONS),
        actions=_join_names(actions),
    )


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _read_lexicon_file(name: str) -> dict[str, Any]:
    """A file of the lexicon; its keys are the names that a reply may use."""
    text = resources.files(lexicon.__name__).joinpath(f"{name}.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))

"""Report text to facts: sections, sentences, findings with negation and hedging; and entity F1 between two reports.

| you have | use |
|---|---|
| the text of a report | `read_report`: findings, devices, relations, recommendations, comparison with a prior study |
| two reports | `compare_reports`: entity F1, with what matches, contradicts, is missed and is invented |
| a study with a report and no findings | `with_report_truth` |
| a study with findings and a report | `combine_with_report`: both together, and where they contradict each other |
| a short answer about one thing | `read_attributes`, `read_trend`, `read_position`, `read_actions`, ... |
| a statement about technique | `read_views`, `read_quality`, `read_measurements` |
| a served model that should read the reports | `carina.reports.by_model` |

Rules and a lexicon read the text, no model: the same text gives the same facts.
"""

from carina.reports.answers import (
    denies_findings,
    names_in,
    read_actions,
    read_attributes,
    read_measurements,
    read_position,
    read_quality,
    read_relations,
    read_trend,
    read_trends,
    read_views,
    states_findings,
)
from carina.reports.combine import CombinedStudy, combine_with_report
from carina.reports.compare import EntityMatch, ReportScore, compare_entities, compare_reports
from carina.reports.conflicts import Conflict
from carina.reports.facts import Attribute, Comparison, Entity, EntityKind, ReportFacts, relation_name
from carina.reports.read import read_report, with_report_truth

__all__ = [
    "Attribute",
    "CombinedStudy",
    "Comparison",
    "Conflict",
    "Entity",
    "EntityKind",
    "EntityMatch",
    "ReportFacts",
    "ReportScore",
    "combine_with_report",
    "compare_entities",
    "compare_reports",
    "denies_findings",
    "names_in",
    "read_actions",
    "read_attributes",
    "read_measurements",
    "read_position",
    "read_quality",
    "read_relations",
    "read_report",
    "read_trend",
    "read_trends",
    "read_views",
    "relation_name",
    "states_findings",
    "with_report_truth",
]

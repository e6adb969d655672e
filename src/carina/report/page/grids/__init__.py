"""The tables of an exam, from its analysis: one module a subject."""

from carina.report.page.grids.breakdown import breakdowns, kinds, questions
from carina.report.page.grids.compare import comparison, detectable
from carina.report.page.grids.errors import after_error, first_errors, recovery
from carina.report.page.grids.headline import formats, headline, in_words, opposing
from carina.report.page.grids.histories import histories, same_under_both
from carina.report.page.grids.reach import reach, target_reach
from carina.report.page.grids.runs import cost, reading

__all__ = [
    "after_error",
    "breakdowns",
    "comparison",
    "cost",
    "detectable",
    "first_errors",
    "formats",
    "headline",
    "histories",
    "in_words",
    "kinds",
    "opposing",
    "questions",
    "reach",
    "reading",
    "recovery",
    "same_under_both",
    "target_reach",
]

"""Estimates and differences of maps as tables: records by name, and one long table."""

from collections.abc import Sequence
from typing import Final

from carina.explanations.analysis.estimates import MapEstimate
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.runs.analysis.estimates import Difference
from carina.runs.analysis.tables import ReportTable

PREFIX: Final = "ground-"
"""Prefix of the names of all tables of maps."""


def maps_tables(analyses: Sequence[MapsAnalysis]) -> dict[str, ReportTable]:
    """Tables by name, those without a row left out."""
    tables: dict[str, ReportTable] = {}
    for name in analyses[0].tables if analyses else ():
        rows = [item for analysis in analyses for item in analysis.tables[name]]
        tables[f"{PREFIX}{name}"] = ReportTable(MapEstimate, rows)
    for name in analyses[0].difference_tables if analyses else ():
        pairs = [item for analysis in analyses for item in analysis.difference_tables[name]]
        tables[f"{PREFIX}{name}"] = ReportTable(Difference, pairs)
    return {name: table for name, table in tables.items() if table.rows}


def long_maps_table(analyses: Sequence[MapsAnalysis]) -> ReportTable:
    """Every estimate of every variant in one table."""
    rows: list[MapEstimate] = []
    for analysis in analyses:
        rows += analysis.estimates
        for name, items in analysis.tables.items():
            if name not in ("headline", "breakdown"):
                rows += items
    return ReportTable(MapEstimate, rows)

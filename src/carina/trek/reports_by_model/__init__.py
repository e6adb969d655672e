"""Radiology reports read by a served model (`--extractor model:<name>`), held to the words of the report."""

from carina.trek.reports_by_model.reading import (
    ExtractionCounts,
    ReadingByModel,
    read_reports_by_model,
    with_report_truth_by_model,
)

__all__ = ["ExtractionCounts", "ReadingByModel", "read_reports_by_model", "with_report_truth_by_model"]

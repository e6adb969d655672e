"""Radiology reports read by a served model (`--extractor model:<name>`), checked against the words of the report."""

from carina.reports.by_model.extract import (
    ExtractionCounts,
    ModelReportFacts,
    read_reports_by_model,
    with_report_truth_by_model,
)

__all__ = ["ExtractionCounts", "ModelReportFacts", "read_reports_by_model", "with_report_truth_by_model"]

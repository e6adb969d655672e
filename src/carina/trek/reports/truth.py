"""Studies that carry only a report get their truth from it."""

import msgspec

from carina.studies.model import Study
from carina.trek.reports.read import read_report


def with_report_truth(study: Study) -> Study:
    """The study with findings, devices, relations and recommendations as its report states them.

    A study that has structured findings or devices, or no report, is returned as it is.
    """
    if study.report is None or study.findings or study.devices:
        return study
    reading = read_report(study.report, prior=study.prior)
    return msgspec.structs.replace(
        study,
        findings=reading.findings,
        devices=reading.devices,
        relations=reading.relations,
        recommendations=reading.recommendations,
        report=reading.report,
    )

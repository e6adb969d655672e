"""Reports in a wording that the lexicon was not written from."""

from carina.phantom import PhantomOptions, make_studies
from carina.reports import read_report
from carina.studies.model import Report

COUNT = 60
TARGET = 0.95


def test_findings_of_the_held_out_wording_are_found() -> None:
    right = found = wanted = 0
    for study, _ in make_studies(COUNT, 7, PhantomOptions(size=32, wording="held-out")):
        assert study.report is not None
        names = {each.id: each.name for each in study.findings}
        stated = {
            names[state.about]
            for sentence in study.report.sentences
            for state in sentence.states
            if state.kind == "finding" and state.certainty in ("present", "uncertain")
        }
        reading = read_report(Report(sections=study.report.sections))
        known = set(names.values())
        said = {each.name for each in reading.findings if each.certainty != "absent"} & known
        right, found, wanted = right + len(said & stated), found + len(said), wanted + len(stated)
    assert wanted > COUNT / 2
    f1 = 2 * right / (found + wanted)
    # The figure alone: no sentence of this wording may be shown where rules are written.
    assert f1 >= TARGET, f"presence F1 is {f1:.3f}"


def test_a_report_says_the_same_with_and_without_its_sentences() -> None:
    for study, _ in make_studies(6, 8, PhantomOptions(size=32, wording="build")):
        assert study.report is not None
        bare, full = read_report(Report(sections=study.report.sections)), read_report(study.report)
        assert full.findings == bare.findings

"""Words of reports name what the vocabulary calls by them, and nothing else."""

import pytest

from carina.reports import read_report
from carina.studies.model import Report, ReportSection
from carina.studies.terms import is_kind_of, list_terms

COARSER = {
    "aortic tortuosity": {"aortic enlargement", "aortic knob enlargement"},
    "atelectasis": {"volume loss"},
    "cardiomegaly": {"enlarged cardiomediastinum"},
    "chest tube": {"pigtail catheter"},
    "edema": {"heart failure", "pulmonary congestion", "vascular redistribution"},
    "emphysema": {"bulla", "chronic obstructive pulmonary disease", "cyst or bulla"},
    "fibrosis": {"fibrotic band"},
    "fracture": {"vertebral compression"},
    "granuloma": {"calcified nodule", "granulomatous disease"},
    "hyperinflation": {"pulmonary lucency"},
    "interstitial markings": {"interstitial lung disease"},
    "lung lesion": {"other lesion"},
    "lung opacity": {"calcification", "interstitial abnormality"},
    "malignancy": {"lung tumor"},
    "mass": {"nodule or mass"},
    "mediastinal mass": {"superior mediastinal widening"},
    "nasogastric tube": {"enteric tube", "feeding tube", "orogastric tube"},
    "nodule": {"nodule or mass"},
    "orthopedic hardware": {"humeral prosthesis"},
    "pacemaker": {"implantable defibrillator"},
    "pneumonia": {"aspiration"},
    "stent": {"aortic endoprosthesis"},
    "surgical clips": {"coronary bypass grafts", "surgical material", "suture material"},
}
"""By name, terms that a report is read as although they are no kind of it: as the labellers of published sets do."""


def read(text):
    facts = read_report(Report(sections=(ReportSection(name="findings", text=text),)))
    return {thing.name: thing.certainty for thing in (*facts.findings, *facts.devices)}


@pytest.mark.parametrize("kind", ["finding", "device"])
def test_a_name_of_the_vocabulary_is_read_as_itself_or_as_what_it_is_a_kind_of(kind):
    wrong = [
        (name, found)
        for term in list_terms(kind)
        for name in (term.name, *term.synonyms)
        for found in read(f"There is {name}.")
        if found != term.name and not is_kind_of(term.name, found) and term.name not in COARSER.get(found, ())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bowel gas pattern is normal.", {}),
        ("The lungs are hyperexpanded, consistent with emphysema.", {"hyperinflation", "emphysema"}),
        ("Soft tissue gas in the left chest wall.", {"subcutaneous emphysema"}),
        ("There is a lesion in the left lower lobe.", {"lung lesion"}),
        ("There is a sclerotic lesion of the left 6th rib.", {"bone lesion"}),
        ("Multiple pulmonary metastases.", {"lung metastasis"}),
        ("There is an anterior mediastinal mass.", {"mediastinal mass"}),
    ],
)
def test_a_site_is_part_of_the_name(text, expected):
    assert set(read(text)) == set(expected)


def test_and_or_says_of_neither_that_it_is_there():
    both = {"atelectasis": "uncertain", "scarring": "uncertain"}
    assert read("There is probable atelectasis and/or scarring.") == both
    assert read("Atelectasis and/or scarring at the left base.") == both
    assert read("Atypical infection is another consideration.") == {"pneumonia": "uncertain"}

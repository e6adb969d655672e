"""Pages for people: a study with its truth, a case with its keys, and many of either at a glance."""

from carina.show.bench import BenchIndex, bench_index
from carina.show.case import CasePage, case_page
from carina.show.contact import ContactSheet, contact_sheet
from carina.show.study import StudyPage, study_page

__all__ = [
    "BenchIndex",
    "CasePage",
    "ContactSheet",
    "StudyPage",
    "bench_index",
    "case_page",
    "contact_sheet",
    "study_page",
]

"""Pages for people: a study with its truth, and many studies at a glance."""

from carina.show.contact import ContactSheet, contact_sheet
from carina.show.study import StudyPage, study_page

__all__ = ["ContactSheet", "StudyPage", "contact_sheet", "study_page"]

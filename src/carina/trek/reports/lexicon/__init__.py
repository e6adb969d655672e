"""The words of radiology reports as data, and their one loader."""

from carina.trek.reports.lexicon.load import Lexicon, OrganState, lexicon

__all__ = ["Lexicon", "OrganState", "lexicon"]

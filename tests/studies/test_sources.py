"""The list of sources."""

import pytest

from carina.studies import SourceInfo
from carina.studies.sources import Source, catalogue


def source(name: str) -> Source:
    return Source(name=name, title=name.upper(), needs="nothing", licence="CC0-1.0", truth=("masks",))


def test_sources_are_listed_by_name():
    assert list(catalogue([source("phantom"), source("nih")])) == ["nih", "phantom"]


def test_two_sources_of_one_name_are_refused():
    with pytest.raises(ValueError, match="share a name"):
        catalogue([source("nih"), source("nih")])


def test_a_manifest_records_name_and_terms():
    assert source("nih").info() == SourceInfo(name="nih", licence="CC0-1.0", url=None)

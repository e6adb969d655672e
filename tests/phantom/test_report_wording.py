"""Wording files of the reports: disjoint sets, many templates, errors that name file and key; grammar."""

import copy
import datetime
import functools
from importlib import resources

import pytest
import yaml

from carina.phantom.reports.grammar import format_date, join_items, polish_sentence
from carina.phantom.reports.wording import build_wording, load_wording
from carina.store.errors import CarinaError


@functools.cache
def read_yaml(name):
    file = resources.files("carina.phantom").joinpath(f"wording/en/{name}.yaml")
    return yaml.safe_load(file.read_text())


def load(group, wording):
    return read_yaml(wording)[group]


def list_templates(document):
    """All sentence templates of a wording set, normalised."""
    texts = set()
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, str):
            texts.add(" ".join(value.lower().split()))
        elif value is not None:
            texts |= list_templates(value)
    return {text for text in texts if text.endswith(".")}


def test_wording_sets_are_disjoint():
    assert list_templates(read_yaml("build")) & list_templates(read_yaml("held-out")) == set()


def test_findings_have_many_templates():
    for wording, least in (("build", 8), ("held-out", 4)):
        for name, words in load("findings", wording).items():
            assert len(set(words["sentences"])) >= least, (wording, name)


def damage_wording(change):
    words = copy.deepcopy(read_yaml("build"))
    change(words)
    return words


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda w: w["hedges"]["sentences"].append("Possible {nown}."),
            r"hedges\.sentences\.12: unknown slot 'nown'",
        ),
        (
            lambda w: w["hedges"]["fragments"].append("Possible {np."),
            r"hedges\.fragments\.6: unbalanced braces",
        ),
        (lambda w: w["hedges"]["fragments"].append("[{np}."), r"hedges\.fragments\.6: '\[' without"),
        (lambda w: w["device"]["plain"].append("The the {np}."), r"device\.plain\.3: doubled word 'The the'"),
        (lambda w: w["findings"].pop("mass"), r"findings: 'mass' is missing"),
        (lambda w: w.pop("quality"), r"quality"),
        (lambda w: w["resolved"].pop("whole"), r"whole"),
        (lambda w: w["impression"]["present"].append("{np} in the heart."), r"'heart' names 'cardiomegaly'"),
        (lambda w: w["findings"]["mass"]["nouns"].append("lump / lumps"), r"not among the terms of 'mass'"),
        (
            lambda w: w["findings"]["pneumothorax"]["appearance"]["nouns"].update(tension=["lump / lumps"]),
            r"not among the terms of 'pneumothorax'",
        ),
        (lambda w: w["impression"]["present"].append("{np}"), r"does not end with a period"),
        (lambda w: w["denials"]["lists"].append("No  {list}."), r"stray space"),
        (lambda w: w.update(extra=["x"]), r"extra"),
    ],
)
def test_problems_of_a_wording_file_are_named(change, message):
    with pytest.raises(CarinaError, match=r"wording/en/build\.yaml.*" + message):
        build_wording(read_yaml("common"), damage_wording(change), folder="wording/en", name="build")


def test_an_unknown_language_is_named():
    with pytest.raises(CarinaError, match=r"wording/xx/common\.yaml"):
        load_wording("xx", "build")


@pytest.mark.parametrize(
    ("rough", "smooth"),
    [
        ("a  opacity is seen .", "An opacity is seen."),
        ("there is a 8 mm nodule.", "There is an 8 mm nodule."),
        ("a unilateral effusion, a NG tube.", "A unilateral effusion, an NG tube."),
        ("a 18-year-old", "An 18-year-old"),
        ("a 1.8 cm mass", "A 1.8 cm mass"),
    ],
)
def test_polish_sentence_sets_articles_spaces_and_capitals(rough, smooth):
    assert polish_sentence(rough) == smooth


def test_join_items_uses_commas_and_a_conjunction():
    assert join_items(["a"], "or") == "a"
    assert join_items(["a", "b"], "or") == "a or b"
    assert join_items(["a", "b", "c"], "and") == "a, b, and c"


@pytest.mark.parametrize(
    ("style", "text"),
    [("%B %d, %Y", "March 4, 2021"), ("%d %B %Y", "4 March 2021"), ("%m/%d/%Y", "03/04/2021")],
)
def test_format_date_has_no_leading_zero_in_words(style, text):
    assert format_date(datetime.date(2021, 3, 4), style) == text

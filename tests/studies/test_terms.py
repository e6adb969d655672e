"""The hierarchy of names: what is found, under which spelling, and what every other list of names must agree with."""

import json
import re
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from carina.percept import LESIONS
from carina.phantom import make_phantoms
from carina.store.errors import CarinaError
from carina.studies import vocabulary
from carina.studies.certainty_words import split_certainty
from carina.studies.model import Assessed, Device, Finding, Image, Study
from carina.studies.terms import (
    NO_FINDING_LABELS,
    UnknownName,
    _fold,
    ancestors,
    descendants,
    find_term,
    find_unknown_names,
    is_known_name,
    is_no_finding,
    list_data_sets,
    list_statements,
    list_terms,
    map_labels,
    name_label,
    nearest_term,
    read_label,
)

TERMS = list_terms()
BY_NAME = {term.name: term for term in TERMS}
DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


def known(name):
    term = find_term(name)
    return None if term is None else term.name


# ---- the file -------------------------------------------------------------------------------------------------------


def test_no_name_or_synonym_occurs_twice():
    spelled = Counter(_fold(name) for term in TERMS for name in (term.name, *term.synonyms))
    assert [name for name, times in spelled.items() if times > 1] == []


def test_every_parent_is_a_term_of_the_same_kind_and_nothing_is_above_itself():
    for term in TERMS:
        for parent in term.parents:
            assert BY_NAME[parent].kind == term.kind, term.name
        assert term.name not in ancestors(term.name)
        assert len(set(term.parents)) == len(term.parents)


def test_no_parent_is_listed_that_another_parent_implies():
    for term in TERMS:
        implied = {name for parent in term.parents for name in ancestors(parent)}
        assert not implied & set(term.parents), term.name


def test_no_statement_is_also_a_term():
    for label in (*NO_FINDING_LABELS, *list_statements()):
        assert find_term(label) is None, label
    assert not [label for label in list_statements() if is_no_finding(label)]


@pytest.mark.parametrize("data_set", list_data_sets())
def test_every_label_is_a_term_or_a_statement(data_set):
    stated = {_fold(label) for label in list_statements()}
    for label, term in map_labels(data_set).items():
        if term is None:
            assert is_no_finding(label) or _fold(label) in stated, label


def test_the_file_is_in_the_package_and_is_plain_text():
    text = resources.files("carina.studies").joinpath("terms.yaml").read_text(encoding="utf-8")
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 130


# ---- other lists of names -------------------------------------------------------------------------------------------


def test_names_of_the_vocabulary_are_names_here():
    anatomy = (*vocabulary.ZONES, *vocabulary.LUNG_PARTS, *vocabulary.COSTOPHRENIC_ANGLES)
    assert [name for name in vocabulary.FINDINGS if not is_known_name(name, "finding")] == []
    assert [name for name in vocabulary.DEVICES if not is_known_name(name, "device")] == []
    assert [name for name in anatomy if not is_known_name(name, "anatomy")] == []
    assert {short: known(short) for short in vocabulary.SHORT_NAMES} == vocabulary.SHORT_NAMES


@pytest.mark.parametrize(("file", "kind"), [("findings", "finding"), ("devices", "device")])
def test_names_that_reports_are_read_into_are_names_here(file, kind):
    text = resources.files("carina.reports.lexicon").joinpath(f"{file}.yaml").read_text(encoding="utf-8")
    names = set(yaml.safe_load(text)) - {"none"}
    assert sorted(name for name in names if not is_known_name(name, kind)) == []


def test_names_that_trek_and_percept_know_are_terms():
    text = resources.files("carina.trek.wording.en").joinpath("common.yaml").read_text(encoding="utf-8")
    names = [*yaml.safe_load(text)["names"], *LESIONS]
    assert [name for name in names if find_term(name) is None] == []


def test_phantoms_use_known_names_only(tmp_path):
    studies = make_phantoms(tmp_path / "studies", n=6, seed=3, size=64, workers=1)
    assert studies.unknown_names() == ()


# ---- looking up -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("Pleural Effusion", "pleural effusion"),
        ("pleural_effusion", "pleural effusion"),
        ("PLEURAL-EFFUSIONS", "pleural effusion"),
        ("Effusion", "pleural effusion"),
        ("Pleural_Thickening", "pleural thickening"),
        ("Airspace Opacity", "lung opacity"),
        ("Opacities", "lung opacity"),
        ("Masses", "mass"),
        ("atelectases", "atelectasis"),
        ("pneumothoraces", "pneumothorax"),
        ("Infiltrate", "infiltration"),
        ("Nodule/Mass", "nodule or mass"),
        ("ILD", "interstitial lung disease"),
        ("Enlarged PA", "enlarged pulmonary artery"),
        ("Other diseases", "other disease"),
        ("Support Devices", "medical device"),
        ("ActiveTuberculosis", "active tuberculosis"),
        ("picc", "peripherally inserted central catheter"),
        ("cardiac silhouette", "heart"),
        ("right upper lung zone", "right upper zone"),
        ("svc", "superior vena cava"),
        ("dragon", None),
        ("No Finding", None),
        ("", None),
        ("s", None),
    ],
)
def test_a_term_is_found_under_any_spelling(spelled, name):
    assert known(spelled) == name


def test_the_kind_narrows_what_is_found():
    assert find_term("pacemakers", "device").name == "pacemaker"
    assert find_term("pacemakers", "finding") is None
    assert find_term("Heart", "anatomy").name == "heart"


def test_what_is_no_name_or_no_kind_is_refused():
    with pytest.raises(CarinaError, match=r"name: expected text, found None"):
        find_term(None)
    with pytest.raises(CarinaError, match=r"kind: .*found 'dragon'"):
        find_term("edema", "dragon")
    with pytest.raises(CarinaError, match=r"kind: .*found 'dragon'"):
        list_terms("dragon")


@given(st.sampled_from([spelled for term in TERMS for spelled in (term.name, *term.synonyms)]), st.data())
def test_case_and_separators_never_matter(spelled, data):
    changed = "".join(
        data.draw(st.sampled_from(["_", "-", " ", "  ", ""]))
        if sign in " -_"
        else data.draw(st.sampled_from([sign.upper(), sign.lower()]))
        for sign in spelled
    )
    assert find_term(changed) is find_term(spelled) is not None


@given(st.text(max_size=300))
def test_no_text_breaks_the_look_up(text):
    term = find_term(text)
    assert term is None or nearest_term(text) == term.name
    assert nearest_term(text) in {None, *BY_NAME}
    assert isinstance(is_no_finding(text), bool)


def test_a_similar_name_is_suggested_only_within_its_kind():
    assert UnknownName("finding", "plural efusion", 1).nearest == "pleural effusion"
    assert UnknownName("anatomy", "plural efusion", 1).nearest is None
    assert find_term("cardiomediastinum", "anatomy").name == "cardiomediastinum"


@pytest.mark.parametrize(
    ("spelled", "nearest"),
    [
        ("Pleural Effusion", "pleural effusion"),
        ("plural efusion", "pleural effusion"),
        ("cardiomegally", "cardiomegaly"),
        ("left pleural effusion", "pleural effusion"),
        ("dragon", None),
        ("x" * 10_000, None),
    ],
)
def test_the_nearest_name(spelled, nearest):
    assert nearest_term(spelled) == nearest


def test_the_hierarchy_up_and_down():
    assert ancestors("consolidation") == ("lung opacity", "pulmonary abnormality")
    assert ancestors("Hydropneumothorax") == ("pleural effusion", "pneumothorax", "pleural abnormality")
    assert ancestors("cardiomegaly") == ("enlarged cardiomediastinum", "cardiomediastinal abnormality")
    assert ancestors("right upper zone") == ("right lung", "lungs", "thorax")
    assert ancestors("dragon") == descendants("dragon") == ()
    assert descendants("hernia") == ("hiatal hernia",)
    assert descendants("nodule") == (
        "multiple nodules",
        "calcified nodule",
        "diffuse nodule",
        "miliary opacities",
    )


def test_up_and_down_are_inverse():
    for term in TERMS:
        for above in ancestors(term.name):
            assert term.name in descendants(above)


# ---- labels of data sets --------------------------------------------------------------------------------------------


def test_chexpert_has_thirteen_labels_and_no_finding():
    labels = map_labels("chexpert")
    assert len(labels) == 14
    assert [label for label, term in labels.items() if term is None] == ["No Finding"]
    assert labels["Pleural Other"].name == "other pleural abnormality"
    assert labels["Support Devices"].kind == "device"
    assert map_labels("mimic-cxr-jpg")["Airspace Opacity"].name == "lung opacity"


@pytest.mark.parametrize(
    ("data_set", "count"),
    [("vinbigdata", 15), ("chestx-det", 13), ("ms-cxr", 8), ("padchest-gr", 26), ("mimic-ils", 7)],
)
def test_number_of_labels(data_set, count):
    assert len(map_labels(data_set)) == count


def test_vindr_has_28_labels():
    # The last but one is spelled in two ways.
    assert len(set(map_labels("vindr-cxr")) - {"Other disease"}) == 28


def test_mimic_ils_targets_are_the_lesions_of_percept():
    assert {label: term.name for label, term in map_labels("mimic-ils").items()} == {
        lesion.name: lesion.finding for lesion in LESIONS.values()
    }


@pytest.mark.parametrize(
    ("label", "kind", "expected"),
    [
        ("Pleural_Thickening", "finding", ("pleural thickening", "Pleural_Thickening")),
        ("mass", "finding", ("mass", None)),
        ("Dragon", "finding", ("Dragon", None)),
        ("Support Devices", "device", ("medical device", "Support Devices")),
        ("Support Devices", "finding", ("Support Devices", None)),
    ],
)
def test_a_label_becomes_a_name_and_is_kept_where_it_differs(label, kind, expected):
    assert name_label(label, kind) == expected


def test_an_unknown_data_set_is_an_error_that_lists_the_known():
    with pytest.raises(CarinaError, match=r"'dragons'.*chexpert.*padchest"):
        map_labels("dragons")


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder shared/data is not beside the checkout")
def test_labels_of_real_files_are_listed():
    import csv

    drawn = {
        label
        for part in ("train", "test")
        for record in json.loads((DATA / f"chestx-det/ChestX_Det_{part}.json").read_text())
        for label in record["syms"]
    }
    assert drawn == set(map_labels("chestx-det"))
    with (DATA / "nih/Data_Entry_2017_v2020.csv").open(newline="") as file:
        images = {label for row in csv.DictReader(file) for label in row["Finding Labels"].split("|")}
    with (DATA / "nih/BBox_List_2017.csv").open(newline="") as file:
        boxes = {row["Finding Label"] for row in csv.DictReader(file)}
    assert images | boxes <= set(map_labels("nih"))
    with (DATA / "covid/metadata.csv").open(newline="") as file:
        found = {row["finding"] for row in csv.DictReader(file)}
    assert found <= set(map_labels("covid"))


@pytest.mark.parametrize("label", ["No Finding", "No finding", "No_Finding", "normal", "Normal"])
def test_no_finding_is_a_statement(label):
    assert is_no_finding(label)
    assert find_term(label) is None
    assert not is_no_finding("no")


@pytest.mark.parametrize(
    ("label", "words", "certainty"),
    [
        ("Pneumothorax", "Pneumothorax", "present"),
        ("Pneumothorax?", "Pneumothorax", "uncertain"),
        ("?Pneumothorax", "Pneumothorax", "uncertain"),
        ("pneumothorax (?)", "pneumothorax", "uncertain"),
        ("TB?", "TB", "uncertain"),
        ("possible pneumothorax", "pneumothorax", "uncertain"),
        ("Probable_Nodule", "Nodule", "uncertain"),
        ("suspected mass", "mass", "uncertain"),
        ("suspicion of mass", "mass", "uncertain"),
        ("likely pneumonia", "pneumonia", "uncertain"),
        ("r/o fracture", "fracture", "uncertain"),
        ("rule out fracture", "fracture", "uncertain"),
        ("cannot exclude effusion", "effusion", "uncertain"),
        ("effusion, cannot be excluded", "effusion", "uncertain"),
        ("probably no effusion", "effusion", "uncertain"),
        ("no effusion", "effusion", "absent"),
        ("no_effusion", "effusion", "absent"),
        ("NoEffusion", "Effusion", "absent"),
        ("without effusion", "effusion", "absent"),
        ("absent effusion", "effusion", "absent"),
        ("effusion (absent)", "effusion", "absent"),
        ("negative for TB", "TB", "absent"),
        ("no evidence of TB", "TB", "absent"),
        ("COVID-19 negative", "COVID-19", "absent"),
        ("Normal", "abnormality", "absent"),
        ("Normal?", "abnormality", "uncertain"),
        ("No finding", "", "absent"),
        ("Negative", "", "absent"),
        ("?", "", "uncertain"),
        ("x" * 300 + "?", "x" * 300 + "?", "present"),
    ],
)
def test_what_a_label_says_of_itself(label, words, certainty):
    assert read_label(label) == (words, certainty)


def test_no_known_name_says_of_itself_that_it_is_absent_or_uncertain():
    for term in TERMS:
        for name in (term.name, *term.synonyms):
            assert split_certainty(name) == (name, "present")


@pytest.mark.parametrize(
    "name",
    [
        "no pneumothorax",
        "pneumothorax?",
        "possible pneumothorax",
        "non-pneumothorax",
        "Pneumothorax (resolved)",
    ],
)
def test_a_denial_or_a_doubt_is_not_taken_for_the_plain_name(name):
    assert find_term(name) is None
    assert nearest_term(name) is None


# ---- names of studies -----------------------------------------------------------------------------------------------


def a_study(**fields):
    return Study(
        id="s1", patient="p1", source="mine", images=(Image(key="a", view="PA", width=4, height=4),), **fields
    )


def test_unknown_names_of_a_study():
    findings = tuple(
        Finding(id=f"f{number}", name=name, certainty="present")
        for number, name in enumerate(("edema", "Edema", "Edema", "dragon", "pacemaker"))
    )
    devices = (
        Device(id="d1", name="pacemaker", certainty="present"),
        Device(id="d2", name="PICC", certainty="present"),
    )
    assessed = Assessed(findings="listed", listed=("edema", "pacemaker", "Mass", "PICC"))
    study = a_study(findings=findings, devices=devices, assessed=assessed)
    assert find_unknown_names(study) == {
        ("finding", "Edema"): True,
        ("finding", "dragon"): True,
        ("finding", "pacemaker"): True,
        ("finding", "Mass"): False,
        ("device", "PICC"): True,
    }
    assert find_unknown_names(a_study()) == {}


def test_the_names_for_anything_of_a_kind_are_known():
    findings = (Finding(id="f1", name="abnormality", certainty="absent"),)
    devices = (Device(id="d1", name="device", certainty="present"),)
    assert find_unknown_names(a_study(findings=findings, devices=devices)) == {}


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        (
            UnknownName("finding", "Edema", 2),
            "finding 'Edema' in 2 studies: not a known name, did you mean 'edema'?",
        ),
        (UnknownName("finding", "dragon", 1), "finding 'dragon' in 1 study: not a known name"),
        (UnknownName("finding", "dragon", 0), "finding 'dragon', which was looked for: not a known name"),
        (
            UnknownName("finding", "pacemaker", 1),
            "finding 'pacemaker' in 1 study: known as the name of a device",
        ),
    ],
    ids=["other spelling", "nothing close", "only looked for", "other kind"],
)
def test_what_is_said_of_an_unknown_name(unknown, message):
    assert unknown.message == message


def test_importing_carina_and_its_studies_reads_no_yaml():
    code = "import sys, carina, carina.studies; print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"False\s*", done.stdout)

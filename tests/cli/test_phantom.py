"""`carina phantom`: options, what it prints, and how it refuses."""

import inspect
import json

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from carina.cli import app
from carina.cli.phantom import phantom as phantom_command
from carina.phantom import Mix, make_phantoms
from carina.store.errors import CarinaError
from carina.studies import open_studies
from carina.studies.vocabulary import FINDINGS

SMALL = ("--size", "32", "--workers", "1")


def phantom(out, *arguments, n=3):
    return CliRunner().invoke(app, ["phantom", "-n", str(n), "-o", str(out), *SMALL, *arguments])


def present(study):
    return {finding.name for finding in study.findings if finding.certainty != "absent"}


def test_it_writes_a_set_and_prints_where(tmp_path):
    result = phantom(tmp_path / "set", "--seed", "7")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'set'}\n"
    studies = open_studies(tmp_path / "set")
    assert len(studies) == 3
    patients = len({study.patient for study in studies})
    images = sum(len(study.images) for study in studies)
    assert result.stderr == f"3 studies of {patients} patient{'s' * (patients > 1)}, {images} images\n"


def test_json_is_one_document_with_the_counts(tmp_path):
    result = phantom(tmp_path / "set", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["studies"] == str(tmp_path / "set")
    assert told["counts"]["studies"] == 3
    assert told["counts"]["images"] == len(list((tmp_path / "set").glob("images/*/*.png")))
    assert result.stderr == ""


def test_findings_are_chosen_by_name_and_weight(tmp_path):
    result = phantom(tmp_path, "--finding", "nodule=1", "--finding", "mass=1", "--normal", "0", n=8)
    assert result.exit_code == 0, result.output
    found = [present(study) for study in open_studies(tmp_path)]
    assert all(names and names <= {"nodule", "mass"} for names in found)


def test_normal_is_the_share_without_a_finding(tmp_path):
    assert phantom(tmp_path, "--normal", "1", n=6).exit_code == 0
    assert all(not present(study) for study in open_studies(tmp_path))


def test_views_and_priors_are_shares_too(tmp_path):
    arguments = ("--pa-with-lateral", "1", "--pa-alone", "0", "--with-prior", "0", "--quality-defect", "0")
    assert phantom(tmp_path, *arguments, n=5).exit_code == 0
    for study in open_studies(tmp_path):
        assert [image.view for image in study.images] == ["PA", "lateral"]
        assert study.prior is study.later is None
        for image in study.images:
            assert (image.quality.rotation, image.quality.exposure) == ("none", "adequate")
            assert image.quality.cut_off == ()


def test_hedged_findings_are_uncertain(tmp_path):
    shares = {}
    for hedged in ("0", "1"):
        arguments = ("--hedged", hedged, "--normal", "0", "--finding", "nodule=1")
        assert phantom(tmp_path / hedged, *arguments, n=12).exit_code == 0
        nodules = [f for s in open_studies(tmp_path / hedged) for f in s.findings if f.name == "nodule"]
        shares[hedged] = sum(f.certainty == "uncertain" for f in nodules) / len(nodules)
    assert shares["0"] == 0
    assert shares["1"] > 0.3  # all that can be in doubt; what anyone would see never is


def test_misplaced_devices(tmp_path):
    arguments = ("--malpositioned", "1", "--pa-with-lateral", "0", "--pa-alone", "0", "--seed", "3")
    assert phantom(tmp_path, *arguments, n=8).exit_code == 0
    devices = [device for study in open_studies(tmp_path) for device in study.devices]
    tubes = [d for d in devices if d.certainty == "present" and d.name != "pacemaker"]
    assert tubes
    assert {device.position for device in tubes} == {"malpositioned"}


def test_twelve_bits_are_stored_in_sixteen(tmp_path):
    assert phantom(tmp_path, "--bits", "12", n=2).exit_code == 0
    for path in tmp_path.glob("images/*/*.png"):
        # Of the PNG header, byte 24 is the bit depth and byte 25 the colour type (0: grey).
        assert tuple(path.read_bytes()[24:26]) == (16, 0)
        values = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert values.dtype == np.uint16
        assert 255 < values.max() <= 4095
    assert {image.bits for study in open_studies(tmp_path) for image in study.images} == {12}


def test_monochrome1_turns_the_grey_scale(tmp_path):
    assert phantom(tmp_path / "plain", n=1).exit_code == 0
    assert phantom(tmp_path / "turned", "--monochrome1", n=1).exit_code == 0
    for path in (tmp_path / "plain").glob("images/*/*.png"):
        plain = cv2.imread(str(path), cv2.IMREAD_UNCHANGED).astype(int)
        turned = cv2.imread(
            str(tmp_path / "turned" / path.relative_to(tmp_path / "plain")), cv2.IMREAD_UNCHANGED
        )
        assert np.abs(plain + turned - 255).max() <= 1


def test_wording_is_an_option(tmp_path):
    assert phantom(tmp_path / "build", n=1).exit_code == 0
    assert phantom(tmp_path / "held-out", "--wording", "held-out", n=1).exit_code == 0
    (one,), (other,) = (open_studies(tmp_path / name) for name in ("build", "held-out"))
    assert one.report != other.report
    assert one.anatomy == other.anatomy


def test_the_set_records_its_seed_and_options(tmp_path):
    assert phantom(tmp_path, "--seed", "11", "--normal", "0.4", n=2).exit_code == 0
    manifest = open_studies(tmp_path).manifest
    assert manifest.seed == 11
    assert manifest.options["size"] == 32
    assert manifest.options["mix"]["normal"] == 0.4


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--normal", "1.5"), "normal"),
        (("--hedged", "-0.1"), "hedged"),
        (("--malpositioned", "2"), "malpositioned"),
        (("--quality-defect", "nan"), "quality_defect"),
        (("--pa-with-lateral", "0.8", "--pa-alone", "0.4"), "pa_with_lateral and pa_alone"),
        (("--finding", "nodule"), "--finding 'nodule'"),
        (("--finding", "nodule=big"), "--finding 'nodule=big'"),
        (("--finding", "appendicitis=1"), "'appendicitis'"),
        (("--finding", "nodule=-1"), "findings['nodule']"),
        (("--finding", "nodule=0"), "findings"),
        (("--size", "8"), "size must be"),
        (("--bits", "10"), "bits must be"),
        (("--wording", "funny"), "wording: expected 'build' or 'held-out', found 'funny'"),
        (("--conspicuity", "0"), "conspicuity must be"),
        (("-n", "0"), "n: expected a whole number of at least 1, found 0"),
        (("--device", "pacemaker=2"), "devices['pacemaker']"),
        (("--device", "drone=0.5"), "'drone'"),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_it(tmp_path, arguments, named):
    result = phantom(tmp_path / "set", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert named in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    "arguments", [("-n", "many"), ("--workers", "many"), ("--workers", "0"), ("--seed", "x")]
)
def test_a_value_of_the_wrong_kind_names_its_option(tmp_path, arguments):
    given = ["phantom", "-n", "2", "-o", str(tmp_path / "set"), "--size", "32", *arguments]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("normal", 1.5), ("size", 8), ("bits", 10), ("wording", "funny"), ("hedged", -0.1)],
)
def test_a_bad_value_is_refused_with_the_same_sentence_in_python(tmp_path, option, value):
    result = phantom(tmp_path / "set", f"--{option}", str(value))
    with pytest.raises(CarinaError) as caught:
        make_phantoms(tmp_path / "set", **({"n": 3, "size": 32, "workers": 1} | {option: value}))
    assert result.stderr == f"Error: {caught.value}\n"


def test_a_bad_number_of_workers_is_refused_in_python(tmp_path):
    with pytest.raises(CarinaError, match="workers: expected a whole number of at least 1 or None, found 0"):
        make_phantoms(tmp_path / "set", n=3, size=32, workers=0)


def test_the_command_has_the_options_and_defaults_of_the_function():
    command, function = inspect.signature(phantom_command), inspect.signature(make_phantoms)
    renamed = {"finding": "findings", "device": "devices"}
    options = {renamed.get(name, name): option.default for name, option in command.parameters.items()}
    assert options.pop("json") is False
    assert options.pop("format_") == "studies"
    assert options == {
        name: option.default for name, option in function.parameters.items() if name != "progress"
    }


@pytest.mark.parametrize("missing", ["-n", "-o"])
def test_number_and_place_have_to_be_given(tmp_path, missing):
    given = {"-n": "2", "-o": str(tmp_path)}
    del given[missing]
    result = CliRunner().invoke(app, ["phantom", *next(iter(given.items()))])
    assert result.exit_code == 2
    assert f"'{missing}'" in result.stderr or "'--out'" in result.stderr


def test_another_seed_in_the_same_folder_is_refused(tmp_path):
    assert phantom(tmp_path, "--seed", "1", n=2).exit_code == 0
    result = phantom(tmp_path, "--seed", "2", n=2)
    assert result.exit_code == 2
    assert "already holds 2 studies" in result.stderr
    assert "seed 1" in result.stderr
    assert len(open_studies(tmp_path)) == 2


def test_more_of_the_same_are_added(tmp_path):
    assert phantom(tmp_path, n=2).exit_code == 0
    first = [study.id for study in open_studies(tmp_path)]
    assert phantom(tmp_path, n=4).exit_code == 0
    assert [study.id for study in open_studies(tmp_path)][:2] == first
    assert len(open_studies(tmp_path)) == 4


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "set").write_text("not a folder")
    result = phantom(tmp_path / "set", n=1)
    assert result.exit_code == 2
    assert str(tmp_path / "set") in result.stderr


def test_help_has_examples_and_every_option_explains_itself():
    result = CliRunner().invoke(app, ["phantom", "--help"])
    assert result.exit_code == 0
    assert "Examples:\n    carina phantom -n 40 --seed 7 -o studies" in result.stdout
    for option in ("--seed", "--finding", "--normal", "--workers", "--json", "--bits", "--monochrome1"):
        assert option in result.stdout


def test_help_states_the_findings_and_the_true_defaults():
    text = " ".join(CliRunner().invoke(app, ["phantom", "--help"], terminal_width=200).output.split())
    assert ", ".join(FINDINGS) in text
    usual = Mix()
    for name in (
        "normal",
        "pa_with_lateral",
        "pa_alone",
        "with_prior",
        "quality_defect",
        "hedged",
        "malpositioned",
    ):
        option = text[text.index(f"--{name.replace('_', '-')} SHARE") :]
        assert f"[default: {getattr(usual, name)}]" in option[:160], name

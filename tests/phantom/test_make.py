"""Study sets on disk: the same bytes for any number of workers and after any interruption."""

import hashlib
import shutil

import cv2
import msgspec
import numpy as np
import pytest

from carina.phantom import Mix, PhantomOptions, make_phantoms, make_studies, make_study
from carina.phantom.course import plan_studies
from carina.phantom.make import write_phantom
from carina.store.errors import CarinaError, StudySetError
from carina.store.progress import call_on_advance
from carina.studies import (
    Assessed,
    certainty_of,
    open_studies,
    states_no_abnormality,
    states_no_device,
    write_part,
)
from carina.studies.terms import is_kind_of
from carina.studies.vocabulary import DEVICES, FINDINGS

SEED = 7
OPTIONS = PhantomOptions(size=64)


def compute_digests(directory):
    """SHA-256 of every file by its name."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def read_modification_times(directory):
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


def read_studies(directory):
    return {study.id: study for study in open_studies(directory)}


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    """Forty studies: a full part and one that is not full."""
    directory = tmp_path_factory.mktemp("forty")
    write_phantom(directory, n=40, seed=SEED, options=OPTIONS, workers=1)
    return directory


@pytest.fixture(scope="module")
def sixty(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sixty")
    write_phantom(directory, n=60, seed=SEED, options=OPTIONS, workers=2)
    return directory


def copy_set(source, target):
    shutil.copytree(source, target)
    return target


# ---- the same bytes ----


def test_workers_make_no_difference(forty, tmp_path):
    write_phantom(tmp_path, n=40, seed=SEED, options=OPTIONS, workers=2)
    assert compute_digests(tmp_path) == compute_digests(forty)


def test_the_first_studies_of_a_larger_set_are_those_of_a_smaller_one(forty, sixty):
    small, large = read_studies(forty), read_studies(sixty)
    assert list(small) == list(large)[:40]
    assert all(large[name] == study for name, study in small.items())
    images = [image.key for study in small.values() for image in study.images]
    assert len(images) > 40
    for key in images:
        assert (forty / key).read_bytes() == (sixty / key).read_bytes()


def test_a_set_on_disk_equals_its_studies_in_memory(forty):
    stored = read_studies(forty)
    for study, pixels in make_studies(4, SEED, OPTIONS):
        same = stored[study.id]
        assert same.findings == study.findings
        assert same.report == study.report
        assert same.anatomy == study.anatomy
        for key, values in pixels.items():
            np.testing.assert_array_equal(cv2.imread(str(forty / key), cv2.IMREAD_UNCHANGED), values)


def test_a_study_does_not_depend_on_those_made_before_it():
    patient, plan = list(plan_studies(SEED, 9, OPTIONS))[8]
    alone = make_study(patient, plan, OPTIONS, SEED)
    *_, last = make_studies(9, SEED, OPTIONS)
    assert alone[0] == last[0]
    for key, values in last[1].items():
        np.testing.assert_array_equal(alone[1][key], values)


def test_another_seed_gives_other_images():
    ((_, first),) = make_studies(1, 1, OPTIONS)
    ((_, second),) = make_studies(1, 2, OPTIONS)
    assert not np.array_equal(next(iter(first.values())), next(iter(second.values())))


def test_the_set_has_no_problems_and_complete_counts(forty):
    studies = open_studies(forty)
    assert list(studies.check(images=True)) == []
    assert len(studies) == 40
    manifest = studies.manifest
    assert manifest.counts.studies == 40
    assert manifest.seed == SEED
    assert sum(part.rows for part in manifest.parts) == 40
    assert manifest.counts.images == len(list(forty.glob("images/*/*.png")))


def test_everything_is_known_of_a_phantom(forty):
    normal = with_device = 0
    for study in read_studies(forty).values():
        assert study.assessed == Assessed(findings="every", devices="every", text=True)
        recorded = {thing.name for thing in (*study.findings, *study.devices) if thing.certainty == "present"}
        known = {name for name in (*FINDINGS, *DEVICES) if certainty_of(study, name) == "present"}
        kinds = {name for name in FINDINGS if any(is_kind_of(other, name) for other in recorded)}
        assert known == recorded | kinds
        assert not any(thing.name in kinds for thing in study.findings if thing.certainty == "absent")
        assert all(certainty_of(study, name) is not None for name in (*FINDINGS, *DEVICES))
        normal += states_no_abnormality(study) is True
        with_device += states_no_device(study) is False
    assert normal > 5
    assert with_device > 5


def test_each_patient_is_in_one_split(sixty):
    splits = {}
    for study in open_studies(sixty):
        assert splits.setdefault(study.patient, study.split) == study.split
    assert set(splits.values()) >= {"train", "test"}


# ---- resuming and extending ----


def test_a_finished_set_is_not_written_again(forty, tmp_path):
    again = copy_set(forty, tmp_path / "again")
    before = read_modification_times(again)
    write_phantom(again, n=40, seed=SEED, options=OPTIONS, workers=1)
    assert read_modification_times(again) == before


def test_an_extended_set_equals_one_made_at_once(forty, sixty, tmp_path):
    grown = copy_set(forty, tmp_path / "grown")
    write_phantom(grown, n=60, seed=SEED, options=OPTIONS, workers=1)
    assert compute_digests(grown) == compute_digests(sixty)


def test_a_set_without_its_manifest_is_resumed(sixty, tmp_path):
    broken = copy_set(sixty, tmp_path / "broken")
    (broken / "studies.json").unlink()
    (broken / "studies" / "part-00001.parquet").unlink()
    kept = broken / "studies" / "part-00000.parquet"
    stamp = kept.stat().st_mtime_ns
    write_phantom(broken, n=60, seed=SEED, options=OPTIONS, workers=1)
    assert compute_digests(broken) == compute_digests(sixty)
    assert kept.stat().st_mtime_ns == stamp  # a complete part is not written again


def test_a_missing_image_is_made_again(forty, tmp_path):
    holed = copy_set(forty, tmp_path / "holed")
    next(holed.glob("images/*/*.png")).unlink()
    write_phantom(holed, n=40, seed=SEED, options=OPTIONS, workers=1)
    assert compute_digests(holed) == compute_digests(forty)


def test_a_damaged_part_is_made_again(forty, tmp_path):
    damaged = copy_set(forty, tmp_path / "damaged")
    (damaged / "studies.json").unlink()
    part = damaged / "studies" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    write_phantom(damaged, n=40, seed=SEED, options=OPTIONS, workers=1)
    assert compute_digests(damaged) == compute_digests(forty)


def test_temporary_files_of_a_killed_process_are_removed(forty, tmp_path):
    """Files are written under a temporary name first; a process that is killed cannot remove it."""
    littered = copy_set(forty, tmp_path / "littered")
    (littered / "studies.json").unlink()
    (littered / "studies" / "part-00001.parquet").unlink()
    image = next(littered.glob("images/*/*.png"))
    image.with_name(f".{image.name}.4242.tmp").write_bytes(b"half")
    (littered / "studies" / ".part-00001.parquet.4242.tmp").write_bytes(b"half")
    write_phantom(littered, n=40, seed=SEED, options=OPTIONS, workers=1)
    assert compute_digests(littered) == compute_digests(forty)


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (SEED + 1, OPTIONS),
        (SEED, PhantomOptions(size=80)),
        (SEED, PhantomOptions(size=64, mix=Mix(normal=0.2))),
    ],
)
def test_a_set_with_another_seed_or_options_is_refused(forty, seed, options):
    before = read_modification_times(forty)
    with pytest.raises(StudySetError, match=r"already holds 40 studies.*seed 7.*another directory"):
        write_phantom(forty, n=40, seed=seed, options=options)
    assert read_modification_times(forty) == before


def test_progress_counts_every_study_once(forty, tmp_path):
    told = []
    write_phantom(tmp_path / "new", n=5, seed=SEED, options=PhantomOptions(size=32), progress=told.append)
    assert sum(told) == 5
    told.clear()
    write_phantom(forty, n=40, seed=SEED, options=OPTIONS, progress=told.append)
    assert sum(told) == 40


# ---- options ----


@pytest.mark.parametrize("size", [32, 101, 160])
def test_images_have_the_requested_size(size):
    for study, pixels in make_studies(3, SEED, PhantomOptions(size=size)):
        for image in study.images:
            assert pixels[image.key].shape == (image.height, image.width) == (size, size)


def test_a_larger_size_gives_the_same_image_with_finer_pixels():
    """Truth in centimetres does not depend on the number of pixels."""
    ((small, small_pixels),) = make_studies(1, SEED, PhantomOptions(size=96))
    ((large, large_pixels),) = make_studies(1, SEED, PhantomOptions(size=192))
    for one, other in zip(small.images, large.images, strict=True):
        assert one.spacing_mm == pytest.approx([2 * spacing for spacing in other.spacing_mm], rel=1e-3)
        reduced = cv2.resize(large_pixels[other.key], (96, 96), interpolation=cv2.INTER_AREA)
        inner = np.s_[8:-8, 8:-8]
        match = np.corrcoef(reduced[inner].ravel(), small_pixels[one.key][inner].ravel())[0, 1]
        assert match > 0.98
        for name, region in small.anatomy_on(one.key).items():
            if name in ("right lung", "left lung", "heart"):
                assert region.area * 4 == pytest.approx(large.anatomy_on(other.key)[name].area, rel=0.1), name


def test_twelve_bits_give_the_same_image_in_finer_steps():
    ((_, eight),) = make_studies(1, SEED, PhantomOptions(size=96))
    ((study, twelve),) = make_studies(1, SEED, PhantomOptions(size=96, bits=12))
    for key, values in twelve.items():
        assert values.dtype == np.uint16
        assert values.max() <= 4095
        assert len(np.unique(values)) > 256
        np.testing.assert_allclose(values / 4095, eight[key] / 255, atol=0.5 / 255 + 1 / 4095)
        assert study.image(key).bits == 12


def test_monochrome1_stores_high_values_for_dark():
    ((_, plain),) = make_studies(1, SEED, PhantomOptions(size=96))
    ((study, turned),) = make_studies(1, SEED, PhantomOptions(size=96, monochrome1=True))
    for key, values in turned.items():
        assert np.abs(values.astype(int) + plain[key] - 255).max() <= 1
        assert study.image(key).monochrome1


def test_conspicuity_changes_the_contrast_of_lesions_and_moves_nothing():
    mix = Mix(normal=0.0, findings={"mass": 1.0}, with_prior=0.0, pa_with_lateral=0.0, pa_alone=1.0)
    subtle, usual = (
        next(iter(make_studies(1, SEED, PhantomOptions(size=128, mix=mix, conspicuity=share))))
        for share in (0.3, 1.0)
    )
    masks = [finding.annotations[0].region for finding in (subtle[0].findings[0], usual[0].findings[0])]
    assert masks[0] == masks[1]
    assert subtle[0].anatomy == usual[0].anatomy
    (faint,), (clear,) = (values.values() for values in (subtle[1], usual[1]))
    mask = masks[0].to_mask()
    assert faint[mask].mean() < clear[mask].mean() - 5
    away = cv2.dilate(mask.astype(np.uint8), np.ones((17, 17))) == 0
    np.testing.assert_array_equal(faint[away], clear[away])


def test_the_mix_decides_findings_and_views():
    only = Mix(normal=0.0, findings={"nodule": 1.0}, pa_with_lateral=1.0, pa_alone=0.0, with_prior=0.0)
    for study, _ in make_studies(6, SEED, PhantomOptions(size=48, mix=only)):
        assert {f.name for f in study.findings if f.certainty != "absent"} == {"nodule"}
        assert [image.view for image in study.images] == ["PA", "lateral"]
        assert study.later is None
    for study, _ in make_studies(4, SEED, PhantomOptions(size=48, mix=Mix(normal=1.0))):
        assert all(f.certainty == "absent" for f in study.findings)


def test_wording_changes_the_words_and_nothing_else():
    built = next(iter(make_studies(1, SEED, PhantomOptions(size=48))))
    held_out = next(iter(make_studies(1, SEED, PhantomOptions(size=48, wording="held-out"))))
    assert built[0].report != held_out[0].report
    assert [f.annotations for f in built[0].findings] == [f.annotations for f in held_out[0].findings]
    for key, values in built[1].items():
        np.testing.assert_array_equal(values, held_out[1][key])


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"size": 16}, "size"),
        ({"bits": 10}, "bits"),
        ({"wording": "funny"}, "wording"),
        ({"conspicuity": 0.0}, "conspicuity"),
    ],
)
def test_bad_options_are_refused_by_name(bad, named):
    with pytest.raises(CarinaError, match=named):
        PhantomOptions(**bad)


def test_a_smaller_number_into_a_larger_set_is_refused(tmp_path):
    options = PhantomOptions(size=64)
    write_phantom(tmp_path, n=3, seed=SEED, options=options)
    with pytest.raises(StudySetError, match="already holds 3 studies, of which these 2 are the first"):
        write_phantom(tmp_path, n=2, seed=SEED, options=options)


def test_a_set_that_is_being_extended_keeps_its_claim(tmp_path):
    options = PhantomOptions(size=64)
    write_phantom(tmp_path, n=2, seed=SEED, options=options)

    write_part(
        tmp_path, 0, [], fingerprint=open_studies(tmp_path).manifest.fingerprint
    )  # the state at the start of an extension
    with pytest.raises(StudySetError, match="the beginning of a set made in another way"):
        write_phantom(tmp_path, n=2, seed=SEED + 1, options=options)
    assert len(list(tmp_path.glob("images/*/*.png"))) > 0


# ---- make_phantoms ------------------------------------------------------------------------------------------------


def test_make_phantoms_returns_the_studies_that_write_phantom_writes(tmp_path):
    told = []
    studies = make_phantoms(
        tmp_path / "set", n=3, seed=SEED, size=64, workers=1, progress=call_on_advance(told.append)
    )
    assert len(studies) == sum(told) == 3
    write_phantom(tmp_path / "same", n=3, seed=SEED, options=OPTIONS)
    assert compute_digests(tmp_path / "set") == compute_digests(tmp_path / "same")


def test_the_defaults_of_make_phantoms_are_those_of_the_options(tmp_path):
    small = make_phantoms(tmp_path, n=1, size=32, workers=1)
    assert small.manifest.options == msgspec.to_builtins(PhantomOptions(size=32))


def test_whole_numbers_are_shares_too_and_give_the_same_set(tmp_path):
    one = make_phantoms(tmp_path / "one", n=1, size=32, normal=1, workers=1)
    other = make_phantoms(tmp_path / "other", n=1, size=32, normal=1.0, workers=1)
    assert one.manifest.fingerprint == other.manifest.fingerprint


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("size", "64", "size: expected a whole number, found '64'"),
        ("findings", {"nodule": "often"}, "findings"),
        ("findings", {"noodle": 1}, "findings has 'noodle', which is not one of atelectasis"),
        ("n", 0, "n: expected a whole number of at least 1, found 0"),
    ],
)
def test_an_option_of_the_wrong_type_or_range_is_named(tmp_path, option, value, sentence):
    with pytest.raises(CarinaError) as caught:
        make_phantoms(tmp_path / "set", **({"n": 1, "size": 32} | {option: value}))
    assert str(caught.value).startswith(sentence)
    assert not (tmp_path / "set").exists()

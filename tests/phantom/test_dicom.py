"""Phantoms as DICOM files: the way of a hospital's archive into a study set and on to a benchmark."""

import io
import json

import numpy as np
import pytest
from pydicom import dcmread
from typer.testing import CliRunner

from carina import CarinaError, build_ground, make_phantoms, open_studies
from carina.cli import app
from carina.phantom import write_dicom
from carina.phantom.dicom import make_uid
from carina.sources import import_source
from carina.sources.dicom.concepts import ANATOMY
from carina.sources.dicom.privacy import load_key


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Phantoms, their DICOM files, and what comes of importing these."""
    base = tmp_path_factory.mktemp("archive")
    studies = make_phantoms(base / "studies", n=8, seed=3, size=128, bits=12, monochrome1=True, workers=1)
    written = write_dicom(studies, base / "archive")
    imported = import_source(
        "dicom", base / "archive", base / "imported", options={"key_file": base / "key"}, workers=1
    )
    return studies, written, imported, load_key(base / "key", None)


def test_every_image_comes_back(archive):
    studies, written, imported, names = archive
    assert (written.studies, written.images, written.segmentations) == (8, 11, 11)
    assert (imported.counts.kept, imported.counts.images, imported.skipped) == (8, written.images, [])
    found = {study.id: study for study in imported.opened()}
    back = open_studies(imported.path)
    for study in studies:
        mine = found[names.name("study", make_uid(study.id).encode())]
        assert (mine.age, mine.sex, mine.order) == (study.age, study.sex, study.order)
        assert [image.view for image in mine.images] == [image.view for image in study.images]
        for image, original in zip(mine.images, study.images, strict=True):
            assert np.array_equal(back.pixels(image), studies.pixels(original))
            assert (image.bits, image.monochrome1, image.window) == (12, True, (2048, 4096))
            assert image.spacing_mm == original.spacing_mm


def test_every_mask_comes_back(archive):
    studies, _, imported, names = archive
    found = {study.id: study for study in imported.opened()}
    for study in studies:
        mine = found[names.name("study", make_uid(study.id).encode())]
        keys = {original.key: image.key for image, original in zip(mine.images, study.images, strict=True)}

        def drawn(things, keys=None):
            return sorted(
                (thing.name, keys[a.image] if keys else a.image, a.region.counts)
                for thing in things
                if thing.certainty == "present"
                for a in thing.annotations
            )

        assert drawn(mine.findings) == drawn(study.findings, keys)
        # One finding on two images is one again, by its tracking UID.
        assert len(mine.findings) == sum(
            f.certainty == "present" and bool(f.annotations) for f in study.findings
        )
        assert drawn(mine.devices) == drawn(study.devices, keys)
        assert sorted((a.name, a.image, a.region.counts) for a in mine.anatomy) == sorted(
            (a.name, keys[a.image], a.region.counts) for a in study.anatomy if a.name in ANATOMY
        )


def test_priors_come_back(archive):
    studies, _, imported, names = archive

    def pairs(found):
        return {(s.prior, s.id) for s in found if s.prior}

    expected = {tuple(names.name("study", make_uid(i).encode()) for i in pair) for pair in pairs(studies)}
    assert expected
    assert pairs(imported.opened()) == expected


def test_the_headers_hold_what_must_not_get_through(archive):
    _, written, imported, _ = archive
    content = next(written.path.rglob("IM*.dcm")).read_bytes()
    assert b"Invented General Hospital" in content
    assert dcmread(io.BytesIO(content)).PatientID.startswith("PHANTOM-")
    everything = b"".join(path.read_bytes() for path in imported.path.rglob("*") if path.is_file())
    for secret in (b"Invented", b"PHANTOM-", b"Nowhere", b"Physician", b"p00000", b"2.25."):
        assert secret not in everything


def test_ground_is_built_from_it(archive, tmp_path):
    bench = build_ground(archive[2].path, tmp_path / "bench", workers=1)
    assert len(bench) > 0


def test_the_same_studies_give_the_same_bytes(archive, tmp_path):
    studies, written, *_ = archive
    again = write_dicom(studies, tmp_path / "again")

    def files(folder):
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.dcm")}

    assert files(again.path) == files(written.path)


def test_a_directory_that_is_in_use_is_refused(archive):
    with pytest.raises(CarinaError, match="not empty"):
        write_dicom(archive[0], archive[1].path)


def test_other_studies_are_not_written(archive, tmp_path):
    with pytest.raises(CarinaError, match="only phantoms"):
        write_dicom(archive[2].path, tmp_path / "out")


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command(tmp_path, as_json):
    out = tmp_path / "archive"
    arguments = ["phantom", "-n", "2", "--size", "64", "--format", "dicom", "--workers", "1", "-o", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--json"] if as_json else arguments)
    assert result.exit_code == 0, result.output
    if as_json:
        assert json.loads(result.stdout)["counts"]["studies"] == 2
    else:
        assert result.stdout.strip() == str(out)
    assert list(out.rglob("SEG*.dcm"))

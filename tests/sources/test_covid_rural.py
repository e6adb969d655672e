"""COVID Rural as MAVL lays it out."""

import numpy as np
import pytest
from tests.sources.files import boxes, defects, read_studies, write_image, write_text

from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of
from carina.studies import write_png

FIRST, SECOND = "COVID-19-AR-16406488_1", "COVID-19-AR-16406488_2"


def make_folder(tmp_path):
    path = tmp_path / "rural"
    write_text(
        path / "test.csv", ",filepath", f"0,jpgs/{FIRST}.jpg", f"1,/data/jpgs/{SECOND}.jpg", "2,other.jpg"
    )
    write_text(path / "valid.csv", ",filepath", f"0,{FIRST}.jpg", "1,gone.jpg")
    for name in (FIRST, SECOND, "other"):
        write_image(path / f"jpgs/{name}.jpg", 30, 20)
    mask = np.zeros((20, 30), np.uint8)
    mask[5:10, 3:9] = 255
    (path / "pngs_masks").mkdir()
    write_png(path / f"pngs_masks/{FIRST}.png", mask)
    write_png(path / f"pngs_masks/{SECOND}.png", mask[:, :20].copy())
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("covid-rural", folder, tmp_path / "out")
    study = studies[FIRST]
    assert (study.images[0].key, study.images[0].view) == (f"jpgs/{FIRST}.jpg", "unknown")
    assert (study.patient, study.source, study.split) == ("COVID-19-AR-16406488", "covid-rural", "val")
    (finding,) = study.findings
    assert (finding.name, finding.label, finding.certainty) == (
        name_of("COVID-19"),
        None if name_of("COVID-19") == "COVID-19" else "COVID-19",
        "present",
    )
    assert boxes(finding) == [("unknown", "mask", (3, 5, 6, 5))]
    assert study.assessed.findings == "unknown"
    assert (studies[SECOND].split, studies[SECOND].findings[0].annotations) == ("test", ())
    assert studies["other"].patient == "other"
    # A mask of another size, and an image without one.
    assert defects(imported) == {"mask size": 1, "no mask": 1}
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("gone", "image missing"),
        (FIRST, "duplicate"),
    ]


def test_a_missing_table_says_what_to_put_where(tmp_path):
    with pytest.raises(SourceError, match=r"test\.csv: missing; put test\.csv, with a column filepath"):
        import_studies("covid-rural", tmp_path, tmp_path.with_name("out"), workers=1)

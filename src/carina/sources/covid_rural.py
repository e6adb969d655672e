"""COVID-19-AR ("COVID Rural"): images of COVID-19 patients with masks of their opacities, as MAVL lays them out.

The masks are not part of the collection of TCIA; who drew them is not stated.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from carina.sources._converted import possible_keys
from carina.sources._draft_images import find_image
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, read_rows
from carina.store.errors import CarinaError
from carina.studies.pixels import read_pixels
from carina.studies.region import Region
from carina.studies.vocabulary import Split

FILES: Final[Mapping[str, Split]] = {
    "train.csv": "train",
    "valid.csv": "val",
    "val.csv": "val",
    "test.csv": "test",
}
IMAGES: Final = "jpgs"
MASKS: Final = "pngs_masks"
LABEL: Final = "COVID-19"
_FILE: Final = "filepath"
_PATIENT: Final = re.compile(r"COVID-19-AR-\d+")


def _find_files(path: Path) -> dict[str, Path]:
    found = {name: path / name for name in FILES if (path / name).is_file()}
    if not found:
        raise SourceError(f"{path / 'test.csv'}: missing; put test.csv, with a column {_FILE}, there")
    return found


@source(
    name="covid-rural",
    title="COVID Rural (COVID-19-AR), with masks",
    needs=f"a folder with test.csv (and train.csv, valid.csv), the images in {IMAGES}/, and the masks in {MASKS}/.",
    tree="""
    test.csv
    jpgs/
      COVID-19-AR-16406488_1.jpg
    pngs_masks/
      COVID-19-AR-16406488_1.png
    """,
    licence="Images: CC BY 4.0 (TCIA COVID-19-AR)",
    truth=("masks",),
    url="https://doi.org/10.7937/tcia.2020.py71-5978",
    citation="Desai S, Baghal A, Wongsurawat T, et al. Chest imaging representing a COVID-19 positive rural U.S. "
    "population. Scientific Data 2020;7:414.",
    inputs=_find_files,
    defects={**DEFECTS, "no mask": "the image has no mask: it is used without"},
    unit="images",
)
def read_covid_rural(path: Path) -> Stream:
    """Read one study an image."""
    seen: set[str] = set()
    for name, file in _find_files(path).items():
        for row in read_rows(file, (_FILE,)):
            image = _stem(row.values.get(_FILE, ""))
            if image in seen:
                yield Skipped(
                    place=row.place, field=_FILE, reason="is there twice", kind="duplicate", study=image
                )
                continue
            seen.add(image)
            yield partial(make_or_skip, _make_study, row.place, image, path, row, FILES[name])


def _make_study(path: Path, row: Row, split: Split) -> Item:
    name = _stem(row.required(_FILE))
    patient = _PATIENT.match(name)
    draft = StudyDraft(
        name, patient=patient[0] if patient else name, source="covid-rural", number=row.number, file=row.file
    )
    key = find_image(path, possible_keys(name, (f"{IMAGES}/", "")))
    if key is None:
        raise RecordError("image", f"'{IMAGES}/{name}.jpg' is missing", kind="image missing")
    image = draft.add_image(path, key, "unknown")
    draft.facts = {"split": split}
    draft.state(LABEL)
    mask = find_image(path, (f"{MASKS}/{name}.png",))
    if mask is None:
        draft.defects["no mask"] += 1
        return draft.finish()
    try:
        region = Region.from_mask(np.asarray(read_pixels(path / mask) > 0))
    except CarinaError:
        region = Region.empty(image.height, image.width)
    draft.add_region(LABEL, key, region, annotator="unknown")
    return draft.finish()


def _stem(text: str) -> str:
    """Name of an image without its folder and ending."""
    return text.strip().replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]

"""Pictures as they are sent: as drawn, smaller, or a grey card."""

import base64
import io

import numpy as np
import pytest
from PIL import Image as Pil

from carina.cases import Views
from carina.errors import CarinaError
from carina.run.pictures import CasePictures


def opened(png):
    return np.asarray(Pil.open(io.BytesIO(png)))


@pytest.fixture
def one(bench):
    return bench["rr"]


def test_a_picture_is_the_view_and_is_made_once(bench, one, monkeypatch):
    made = []
    original = Views.png
    monkeypatch.setattr(
        Views, "png", lambda self, case, view: made.append(view) or original(self, case, view)
    )
    pictures = CasePictures(bench)
    pictures.add(one)
    assert pictures("rr", "v1") == original(Views(bench), one, "v1")
    assert pictures("rr", "v1") is pictures("rr", "v1")
    assert made == ["v1"]


def test_a_picture_is_downscaled_to_its_longest_side(bench, one):
    pictures = CasePictures(bench, max_side=16)
    pictures.add(one)
    assert opened(pictures("rr", "v1")).shape[:2] == (16, 16)
    larger = CasePictures(bench, max_side=64)
    larger.add(one)
    assert opened(larger("rr", "v1")).shape[:2] == (32, 32)


def test_a_grey_card_has_the_size_and_nothing_else(bench, one):
    pictures = CasePictures(bench, blind=True)
    pictures.add(one)
    card = opened(pictures("rr", "v2"))
    assert card.shape[:2] == (32, 32)
    assert np.unique(card).tolist() == [128]


def test_a_case_that_has_ended_is_forgotten(bench):
    pictures = CasePictures(bench)
    for name in ("lf", "rr"):
        pictures.add(bench[name])
    pictures.drop(bench["lf"])
    assert pictures("rr", "v1")
    with pytest.raises(KeyError):
        pictures("lf", "v1")


def test_a_picture_of_no_size_is_refused(bench):
    with pytest.raises(CarinaError, match="--max-side 3"):
        CasePictures(bench, max_side=3)


def test_data_uris_hold_the_same_picture_and_nothing_is_kept(bench, one):
    pictures = CasePictures(bench)
    uris = pictures.data_uris(one, ["v1", "v3"])
    pictures.add(one)
    assert {
        view: base64.b64decode(uri.removeprefix("data:image/png;base64,")) for view, uri in uris.items()
    } == {view: pictures("rr", view) for view in ("v1", "v3")}

"""Images as they are sent: as rendered, downscaled, or replaced by grey."""

import base64
import io

import numpy as np
import pytest
from PIL import Image as Pil

from carina.cases import Views
from carina.runs.images import CaseImages
from carina.store.errors import CarinaError


def opened(png):
    return np.asarray(Pil.open(io.BytesIO(png)))


@pytest.fixture
def one(bench):
    return bench["rr"]


def test_an_image_is_the_rendered_view_and_is_encoded_once(bench, one, monkeypatch):
    made = []
    original = Views.png
    monkeypatch.setattr(
        Views, "png", lambda self, case, view: made.append(view) or original(self, case, view)
    )
    images = CaseImages(bench)
    images.add(one)
    assert images("rr", "v1") == original(Views(bench), one, "v1")
    assert images("rr", "v1") is images("rr", "v1")
    assert made == ["v1"]


def test_an_image_is_downscaled_to_its_longest_side(bench, one):
    images = CaseImages(bench, max_side=16)
    images.add(one)
    assert opened(images("rr", "v1")).shape[:2] == (16, 16)
    larger = CaseImages(bench, max_side=64)
    larger.add(one)
    assert opened(larger("rr", "v1")).shape[:2] == (32, 32)


def test_a_blind_image_is_grey_and_keeps_its_size(bench, one):
    images = CaseImages(bench, blind=True)
    images.add(one)
    grey = opened(images("rr", "v2"))
    assert grey.shape[:2] == (32, 32)
    assert np.unique(grey).tolist() == [128]


def test_the_images_of_a_dropped_case_are_forgotten(bench):
    images = CaseImages(bench)
    for name in ("lf", "rr"):
        images.add(bench[name])
    images.drop(bench["lf"])
    assert images("rr", "v1")
    with pytest.raises(KeyError):
        images("lf", "v1")


def test_a_longest_side_below_16_pixels_is_refused(bench):
    with pytest.raises(CarinaError, match="max_side 3"):
        CaseImages(bench, max_side=3)


def test_data_uris_hold_the_same_images(bench, one):
    images = CaseImages(bench)
    uris = images.data_uris(one, ["v1", "v3"])
    images.add(one)
    assert {
        view: base64.b64decode(uri.removeprefix("data:image/png;base64,")) for view, uri in uris.items()
    } == {view: images("rr", view) for view in ("v1", "v3")}

"""From attenuation to grey levels: contrast, noise, exposure, bit depth, marker and collimation."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from carina.phantom.imaging import Detector, add_collimation, add_marker, expose, quantise, sample_detector
from carina.store.seeding import rng

SIZE = 160
AIR, LUNG, SOFT = 0.0, 1.6, 4.0
"""Attenuation of rays beside the patient, through the chest at the lungs, and through the mediastinum."""


def make_chest():
    """A round patient with two lungs: attenuation, and the masks of lungs and body."""
    rows, cols = np.mgrid[:SIZE, :SIZE] - SIZE / 2
    body = np.hypot(rows, cols) < 70
    lungs = (np.hypot(rows, cols - 32) < 22) | (np.hypot(rows, cols + 32) < 22)
    attenuation = np.where(lungs, LUNG, np.where(body, SOFT, AIR)).astype(np.float32)
    return cv2.GaussianBlur(attenuation, (0, 0), 1.5), lungs, body


PLAIN, LUNGS, BODY = make_chest()
HEART = np.zeros_like(LUNGS)
HEART[70:90, 75:85] = True
DEEP_LUNG = cv2.erode(LUNGS.astype(np.uint8), np.ones((15, 15))) > 0
NOTHING = np.zeros_like(PLAIN)
DETECTOR = Detector(
    scatter_share=0.35,
    scatter_width=0.1,
    counts=90.0,
    blur_mm=0.25,
    exposure=0.0,
    lung_level=0.33,
    dense_level=0.87,
    detail=1.5,
)


def render(lesions=NOTHING, *, detector=DETECTOR, seed=1, pixel_cm=0.08):
    exposure = expose(PLAIN, lungs=LUNGS, body=BODY, pixel_cm=pixel_cm, detector=detector)
    return exposure.render_image(lesions, np.random.default_rng(seed))


def test_air_is_black_lung_dark_and_the_mediastinum_bright():
    image = render()
    assert image.min() >= 0
    assert image.max() <= 1
    assert np.median(image[~BODY]) < 0.03
    assert 0.1 < np.median(image[DEEP_LUNG]) < 0.45
    assert np.median(image[HEART]) > 0.7


def test_more_exposure_gives_a_darker_image():
    under, ideal, over = (
        np.median(render(detector=replace(DETECTOR, exposure=stops))[LUNGS]) for stops in (-1.0, 0.0, 1.0)
    )
    assert over < ideal - 0.03
    assert under > ideal + 0.03


def test_noise_is_stronger_behind_the_heart_than_in_lung():
    """Few photons come through the mediastinum: there the signal-to-noise ratio is lowest."""
    images = np.stack([render(seed=seed) for seed in range(16)]).astype(np.float64)
    # The inverse of the sigmoid is proportional to the logarithm of the signal, whose noise is 1 / SNR.
    density = np.log(images / (1 - images))
    noise = density.std(axis=0)
    assert noise[HEART].mean() > 1.4 * noise[DEEP_LUNG].mean()


def test_noise_falls_with_the_square_root_of_the_dose():
    def noise(counts):
        images = np.stack(
            [render(detector=replace(DETECTOR, counts=counts), seed=seed) for seed in range(12)]
        )
        return images.std(axis=0)[DEEP_LUNG].mean()

    assert noise(20.0) / noise(80.0) == pytest.approx(2.0, rel=0.1)


def test_the_same_seed_gives_the_same_noise_and_another_seed_another():
    np.testing.assert_array_equal(render(seed=3), render(seed=3))
    assert (render(seed=3) != render(seed=4)).mean() > 0.9


def test_noise_does_not_depend_on_lesions():
    lesion = np.zeros_like(PLAIN)
    lesion[70:80, 40:50] = 0.5
    with_it, without = render(lesion), render()
    assert (with_it[70:80, 40:50] > without[70:80, 40:50] + 0.01).all()
    reach = 6  # pixels that the blur of the detector may change
    elsewhere = np.ones_like(LUNGS)
    elsewhere[70 - reach : 80 + reach, 40 - reach : 50 + reach] = False
    np.testing.assert_array_equal(with_it[elsewhere], without[elsewhere])


def test_a_lesion_that_is_air_is_darker():
    hole = np.zeros_like(PLAIN)
    hole[72:88, 42:54] = -0.4
    assert render(hole)[72:88, 42:54].mean() < render()[72:88, 42:54].mean() - 0.03


def test_more_attenuation_is_never_darker():
    means = []
    for amount in (0.0, 0.2, 0.5, 1.0, 3.0, 20.0):
        lesion = np.zeros_like(PLAIN)
        lesion[75:85, 120:124] = amount
        means.append(render(lesion)[78:82, 121:123].mean())
    assert means == sorted(means)
    assert means[-1] > 0.85  # metal is white


def test_scatter_lowers_the_contrast():
    """With more scatter, the same difference of attenuation gives a smaller difference of the signal."""
    lesion = np.zeros_like(PLAIN)
    lesion[HEART] = 0.5

    def contrast(share):
        detector = replace(DETECTOR, scatter_share=share, counts=1e6)
        with_it, without = (render(x, detector=detector).astype(np.float64) for x in (lesion, NOTHING))
        density = [np.log(x / (1 - x))[74:86, 78:82].mean() for x in (with_it, without)]
        return density[0] - density[1]

    assert contrast(0.1) > 1.3 * contrast(0.6) > 0


def test_a_portable_unit_has_more_scatter():
    ap = [sample_detector(rng(k, "detector"), view="AP", exposure=0.0).scatter_share for k in range(20)]
    pa = [sample_detector(rng(k, "detector"), view="PA", exposure=0.0).scatter_share for k in range(20)]
    assert min(ap) > max(pa)


def test_more_exposure_is_more_photons():
    counts = [sample_detector(rng(1, "x"), view="PA", exposure=stops).counts for stops in (-1.0, 0.0, 1.0)]
    assert counts == sorted(counts)


# ---- bit depth, marker, collimation ----


@pytest.mark.parametrize(("bits", "top", "dtype"), [(8, 255, np.uint8), (12, 4095, np.uint16)])
def test_stored_values_span_the_bits(bits, top, dtype):
    ramp = np.array([[-0.2, 0.0, 0.5, 1.0, 1.3]], np.float32)
    stored = quantise(ramp, bits=bits, monochrome1=False)
    assert stored.dtype == dtype
    assert stored.tolist() == [[0, 0, round(top / 2), top, top]]
    turned = quantise(ramp, bits=bits, monochrome1=True)
    assert turned.tolist() == [[top, top, round(top / 2), 0, 0]]


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
def test_a_marker_is_small_bright_and_in_the_upper_corner_of_the_side_it_names(view):
    sides = set()
    for seed in range(30):
        before = np.full((512, 512), 0.2, np.float32)
        after = before.copy()
        add_marker(after, view, rng(seed, "marker"))
        rows, cols = np.nonzero(after > before)
        assert 0 < len(rows) < 0.01 * before.size
        assert rows.max() < 0.25 * 512
        assert after[rows, cols].max() > 0.7
        side = "left" if cols.mean() > 256 else "right"  # the patient's: L on the image's right
        assert cols.min() > 0.8 * 512 if side == "left" else cols.max() < 0.25 * 512
        sides.add(side)
    assert sides == ({"left"} if view == "lateral" else {"left", "right"})


def test_collimation_blackens_straight_edges_alone():
    for seed in range(20):
        image = np.ones((200, 200), np.float32)
        add_collimation(image, rng(seed, "collimation"))
        dark = image < 0.5
        assert not dark[10:-10, 10:-10].any()
        rows, cols = dark.all(axis=1), dark.all(axis=0)
        np.testing.assert_array_equal(dark, rows[:, None] | cols)


# ---- whole images ----


def test_lungs_are_darker_than_the_mediastinum_in_every_frontal_image(phantoms):
    for one in phantoms:
        image, _, masks = one.views[0]
        pixels = one.pixels[image.key] / 255
        lungs = masks["right lung"] | masks["left lung"]
        clear = lungs.copy()
        for annotation in (a for finding in one.study.findings for a in finding.annotations):
            if annotation.image == image.key:
                clear &= ~annotation.region.to_mask()
        if clear.sum() < 0.2 * lungs.sum():
            continue  # too little aerated lung
        middle = (masks["mediastinum"] | masks["heart"]) & ~lungs
        assert np.median(pixels[clear]) < np.median(pixels[middle]) - 0.08, str(one)


def test_bones_are_brighter_than_the_lung_beside_them(chest):
    shown_chest = chest.take_radiograph(size=320)
    ribs, lung = shown_chest.anatomy["right ribs"], shown_chest.anatomy["right lung"]
    field = cv2.erode(lung.astype(np.uint8), np.ones((9, 9))) > 0
    assert shown_chest.pixels[field & ribs].mean() > shown_chest.pixels[field & ~ribs].mean() + 3


def test_overexposed_images_are_darker(chest):
    def lung(stops):
        image = chest.take_radiograph(exposure=stops)
        return np.median(image.pixels[image.anatomy["right lung"]])

    assert lung(1.2) < lung(0.0) < lung(-1.2)


def test_images_use_the_range_of_grey_levels(phantoms):
    for one in phantoms:
        for key, pixels in one.pixels.items():
            low, high = np.percentile(pixels, [1, 99])
            assert high - low > 100, key
            assert (pixels == 255).mean() < 0.05, key

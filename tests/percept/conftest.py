"""Chests drawn with ellipses instead of rays: lungs, lesions, scenes and whole studies; and a few phantoms."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from carina.percept.analysis import analyse_lesion
from carina.percept.anatomy import make_geometry, read_anatomy
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis
from carina.percept.rules import Rules
from carina.phantom import PhantomOptions, make_studies
from carina.studies import Anatomy, Annotation, Finding, Image, Provenance, Region, Study, write_studies

SIZE = 256
RULES = Rules()


def ellipse(cx, cy, rx, ry, *, angle=0.0, size=SIZE):
    """Pixels whose centre lies in an ellipse."""
    y, x = np.mgrid[:size, :size] + 0.5
    cos, sin = np.cos(angle), np.sin(angle)
    u, v = (x - cx) * cos + (y - cy) * sin, (y - cy) * cos - (x - cx) * sin
    return (u / rx) ** 2 + (v / ry) ** 2 <= 1


def rectangle(top, left, height, width, *, size=SIZE):
    mask = np.zeros((size, size), bool)
    mask[top : top + height, left : left + width] = True
    return mask


def lungs(size=SIZE):
    """Right and left; the patient's right is on the image's left. The left one is narrower, as next to a heart."""
    k = size / 256
    return (
        ellipse(75 * k, 130 * k, 45 * k, 90 * k, size=size),
        ellipse(184 * k, 130 * k, 40 * k, 90 * k, size=size),
    )


def image_of(mask, key="a.png", view="PA"):
    return Image(key=key, view=view, width=mask.shape[1], height=mask.shape[0])


def finding(name, *masks, certainty="present", number=1, drawn="mask", annotator="reader", image="a.png"):
    return Finding(
        id=f"f{number}",
        name=name,
        certainty=certainty,
        annotations=tuple(
            Annotation(
                image=image,
                region=mask if isinstance(mask, Region) else Region.from_mask(mask),
                drawn=drawn,
                annotator=annotator,
            )
            for mask in masks
        ),
    )


def study(*findings, fields=None, name="s1", patient=None, view="PA", split="train", **more):
    """A study with one frontal image; `fields` are the two lungs, () for none."""
    both = lungs() if fields is None else fields
    shape = both[0] if len(both) else np.zeros((SIZE, SIZE), bool)
    image = image_of(shape, key=f"{name}.png", view=view)
    on = [
        Anatomy(name=f"{side} lung", image=image.key, region=Region.from_mask(mask), annotator="reader")
        for side, mask in zip(("right", "left"), both, strict=False)
    ]
    moved = tuple(
        Finding(
            **{
                **{field: getattr(one, field) for field in one.__struct_fields__},
                "annotations": tuple(
                    msgspec.structs.replace(drawn, image=image.key) for drawn in one.annotations
                ),
            }
        )
        for one in findings
    )
    return Study(
        **{
            "id": name,
            "patient": patient or f"p-{name}",
            "source": "drawn",
            "order": 0,
            "images": (image,),
            "findings": moved,
            "anatomy": tuple(on),
            "split": split,
        }
        | more
    )


def anatomy(right=None, left=None):
    fields = lungs() if right is None else (right, left)
    drawn = study(fields=fields)
    return read_anatomy(drawn, drawn.images[0], Rules())


def scene(truth, *, target="consolidation", fields=None, rules=RULES):
    return make_geometry(LESIONS[target], truth, anatomy(*(fields or ())), rules)


def some_lesions():
    """Masks within the lungs that leave room for everything: large, two-sided, in pieces, oblique."""
    right, left = lungs()
    return {
        "large": right & ellipse(75, 150, 38, 60),
        "oblique": left & ellipse(186, 150, 30, 62, angle=0.25),
        "bilateral": (right & ellipse(75, 150, 36, 55)) | (left & ellipse(184, 150, 33, 50)),
        "pieces": (right & ellipse(75, 85, 34, 32)) | (right & ellipse(75, 175, 34, 32)),
        "filling": right,
        "lower": (right & rectangle(160, 0, 96, 128)) | (left & rectangle(160, 128, 96, 128)),
    }


def population(patients=12, *, targets=("edema", "effusion", "cardiomegaly")):
    """Studies of patients who each have one of the lesions and none of the others; unalike in size and place."""
    chance = np.random.default_rng(2)
    shapes = [
        mask for name, mask in some_lesions().items() if name in ("bilateral", "lower", "pieces", "oblique")
    ]
    made = []
    for n in range(patients):
        for target in targets:
            if LESIONS[target].in_lungs:
                mask = np.roll(
                    shapes[n % len(shapes)], chance.integers(-3, 4, 2), axis=(0, 1)
                ) & np.logical_or(*lungs())
            else:
                mask = ellipse(
                    130 + chance.uniform(-5, 5), 170, chance.uniform(40, 55), chance.uniform(35, 45)
                )
            absent = [
                finding(LESIONS[other].finding, certainty="absent", number=k)
                for k, other in enumerate(targets, start=2)
                if other != target
            ]
            made.append(
                study(
                    finding(LESIONS[target].finding, mask),
                    *absent,
                    name=f"{target}-{n}",
                    split=("train", "val", "test")[n % 3],
                )
            )
    return made


def write_set(directory, studies):
    """A study set on disk, without pictures: nothing of the build looks at pixels."""
    write_studies(directory, studies, Provenance(command="drawn"))
    return directory


@pytest.fixture(scope="session")
def chest():
    """Makers of synthetic chests."""
    return SimpleNamespace(
        size=SIZE,
        rules=RULES,
        ellipse=ellipse,
        rectangle=rectangle,
        lungs=lungs,
        image=image_of,
        finding=finding,
        study=study,
        anatomy=anatomy,
        scene=scene,
        lesions=some_lesions,
        population=population,
        write_set=write_set,
    )


@pytest.fixture(scope="session")
def phantoms():
    """A few real phantom studies, without their pixels."""
    return [made for made, _ in make_studies(18, 5, PhantomOptions(size=SIZE))]


@pytest.fixture(scope="session")
def analyses(phantoms):
    """Lesions that can be asked about: of drawn chests and of phantoms."""
    drawn = [
        study(finding("edema", mask), name=f"drawn-{name}-{seed}")
        for name, mask in some_lesions().items()
        for seed in range(2)
    ]
    outcomes = [analyse_lesion(one, "edema", seed=3, rules=RULES) for one in drawn]
    for one in phantoms:
        there = {found.name for found in one.findings if found.certainty == "present"}
        outcomes += [
            analyse_lesion(one, lesion.name, seed=3, rules=RULES)
            for lesion in LESIONS.values()
            if lesion.finding in there
        ]
    return [outcome for outcome in outcomes if isinstance(outcome, LesionAnalysis)]

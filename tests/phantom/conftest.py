"""Phantom studies to test: a set with some of everything, and single radiographs made to order."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest

from carina.phantom import Mix, PhantomOptions, make_study, radiograph
from carina.phantom.course import plan_studies
from carina.phantom.plan import DevicePlan, LesionPlan, PatientPlan, StudyPlan, Technique
from carina.studies import Finding, Image, Study

SEED, COUNT, SIZE = 7, 56, 192
MIX = Mix(normal=0.15, quality_defect=0.4, hedged=0.3, malpositioned=0.4)
"""More of everything that can be wrong than in a clinic, so that few studies hold it."""


@dataclass(frozen=True)
class Made:
    """A study with what it was made from."""

    patient: PatientPlan
    plan: StudyPlan
    study: Study
    pixels: dict[str, np.ndarray]

    def __str__(self) -> str:
        return self.study.id

    @property
    def frontal(self) -> Image:
        return self.study.images[0]

    @cached_property
    def views(self) -> list[tuple[Image, Technique, dict[str, np.ndarray]]]:
        """Each image with its technique and the masks of its anatomy."""
        masks = {
            image.key: {name: region.to_mask() for name, region in self.study.anatomy_on(image.key).items()}
            for image in self.study.images
        }
        return [
            (image, technique, masks[image.key])
            for image, technique in zip(self.study.images, self.plan.techniques, strict=True)
        ]

    @property
    def there(self) -> list[tuple[LesionPlan, Finding]]:
        """The planned lesions with what the truth says of them."""
        return list(zip(self.plan.lesions, self.study.findings, strict=False))


@pytest.fixture(scope="session")
def made() -> list[Made]:
    options = PhantomOptions(size=SIZE, mix=MIX)
    return [
        Made(patient, plan, *make_study(patient, plan, options, SEED))
        for patient, plan in plan_studies(SEED, COUNT, options)
    ]


@pytest.fixture(scope="session")
def courses(made: list[Made]) -> list[list[Made]]:
    """The same by patient, in order of time."""
    by_patient: dict[str, list[Made]] = {}
    for one in made:
        by_patient.setdefault(one.study.patient, []).append(one)
    return list(by_patient.values())


# ---- made to order ----


def a_lesion(name: str, side: str = "right", **more: object) -> LesionPlan:
    default = {"key": "l1", "extent": 0.5, "density": 0.8}
    return LesionPlan(name=name, side=side, **(default | more))


def a_device(name: str, side: str = "midline", **more: object) -> DevicePlan:
    return DevicePlan(name=name, side=side, **({"key": "d1", "adequate": True, "depth": 0.5} | more))


def a_technique(view: str = "PA", **more: object) -> Technique:
    default = {"rotation_degrees": 0.0, "inspiration": 0.9, "exposure": 0.0}
    return Technique(view=view, **(default | more))


def a_study(
    *lesions: LesionPlan, devices: tuple[DevicePlan, ...] = (), view: str = "PA", **technique: object
) -> StudyPlan:
    views = ("PA", "lateral") if view == "both" else (view,)
    return StudyPlan(
        id="p000001-s1",
        order=0,
        date=datetime.date(2101, 3, 4),
        age=55,
        supine=bool(technique.pop("supine", False)),
        techniques=tuple(a_technique(one, **technique) for one in views),
        lesions=lesions,
        devices=devices,
        relations=(),
        resolved_lesions=(),
        removed_devices=(),
        ecg_leads=False,
    )


def a_patient(*studies: StudyPlan, **more: object) -> PatientPlan:
    default = {"sex": "M", "height_cm": 175.0, "bmi": 26.0, "cardiothoracic_ratio": 0.45}
    return PatientPlan(id="p000001", index=1, studies=studies, **(default | more))


def take_radiograph(
    *lesions: LesionPlan,
    seed: int = 1,
    size: int = 192,
    patient: dict[str, object] | None = None,
    **study: object,
) -> radiograph.Radiograph:
    """One frontal radiograph."""
    plan = a_study(*lesions, **study)
    who = a_patient(plan, **(patient or {}))
    return radiograph.take_radiograph(who, plan, plan.techniques[0], PhantomOptions(size=size), seed)


def make(
    *lesions: LesionPlan,
    seed: int = 1,
    size: int = 192,
    patient: dict[str, object] | None = None,
    **study: object,
) -> Made:
    """One study with its truth and report."""
    plan = a_study(*lesions, **study)
    who = a_patient(plan, **(patient or {}))
    return Made(who, plan, *make_study(who, plan, PhantomOptions(size=size), seed))


@pytest.fixture(scope="session")
def chest() -> SimpleNamespace:
    """Builders of plans, and of radiographs and studies from them."""
    return SimpleNamespace(
        lesion=a_lesion,
        device=a_device,
        study=a_study,
        patient=a_patient,
        take_radiograph=take_radiograph,
        make=make,
    )


@pytest.fixture
def beams(monkeypatch: pytest.MonkeyPatch) -> Iterator[list]:
    """The beams of the radiographs that are taken in a test, in order."""
    seen: list = []
    real = radiograph.make_beam

    def remembered(*args: object, **kwargs: object) -> object:
        seen.append(real(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(radiograph, "beam_for", remembered)
    return seen

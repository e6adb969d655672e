"""Phantom studies for tests: a varied set, and single radiographs and studies from given plans."""

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
"""More findings, defects and malpositioned devices than in a clinic, so that a small set has all of them."""


@dataclass(frozen=True)
class PhantomStudy:
    """A study with the plan it was made from."""

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
    def lesions_with_findings(self) -> list[tuple[LesionPlan, Finding]]:
        """The planned lesions with their findings."""
        return list(zip(self.plan.lesions, self.study.findings, strict=False))


@pytest.fixture(scope="session")
def phantoms() -> list[PhantomStudy]:
    options = PhantomOptions(size=SIZE, mix=MIX)
    return [
        PhantomStudy(patient, plan, *make_study(patient, plan, options, SEED))
        for patient, plan in plan_studies(SEED, COUNT, options)
    ]


@pytest.fixture(scope="session")
def courses(phantoms: list[PhantomStudy]) -> list[list[PhantomStudy]]:
    """The phantoms of each patient, in order of time."""
    by_patient: dict[str, list[PhantomStudy]] = {}
    for one in phantoms:
        by_patient.setdefault(one.study.patient, []).append(one)
    return list(by_patient.values())


# ---- from given plans ----


def make_lesion(name: str, side: str = "right", **more: object) -> LesionPlan:
    default = {"key": "l1", "extent": 0.5, "density": 0.8}
    return LesionPlan(name=name, side=side, **(default | more))


def make_device(name: str, side: str = "midline", **more: object) -> DevicePlan:
    return DevicePlan(name=name, side=side, **({"key": "d1", "adequate": True, "depth": 0.5} | more))


def make_technique(view: str = "PA", **more: object) -> Technique:
    default = {"rotation_degrees": 0.0, "inspiration": 0.9, "exposure": 0.0}
    return Technique(view=view, **(default | more))


def make_study_plan(
    *lesions: LesionPlan, devices: tuple[DevicePlan, ...] = (), view: str = "PA", **technique: object
) -> StudyPlan:
    views = ("PA", "lateral") if view == "both" else (view,)
    return StudyPlan(
        id="p000001-s1",
        order=0,
        date=datetime.date(2101, 3, 4),
        age=55,
        supine=bool(technique.pop("supine", False)),
        techniques=tuple(make_technique(one, **technique) for one in views),
        lesions=lesions,
        devices=devices,
        relations=(),
        resolved_lesions=(),
        removed_devices=(),
        ecg_leads=False,
    )


def make_patient_plan(*studies: StudyPlan, **more: object) -> PatientPlan:
    default = {"sex": "M", "height_cm": 175.0, "bmi": 26.0, "cardiothoracic_ratio": 0.45}
    return PatientPlan(id="p000001", index=1, studies=studies, **(default | more))


def take_radiograph(
    *lesions: LesionPlan,
    seed: int = 1,
    size: int = 192,
    patient: dict[str, object] | None = None,
    **study: object,
) -> radiograph.Radiograph:
    """Take one radiograph."""
    plan = make_study_plan(*lesions, **study)
    patient_plan = make_patient_plan(plan, **(patient or {}))
    return radiograph.take_radiograph(patient_plan, plan, plan.techniques[0], PhantomOptions(size=size), seed)


def make_phantom(
    *lesions: LesionPlan,
    seed: int = 1,
    size: int = 192,
    patient: dict[str, object] | None = None,
    **study: object,
) -> PhantomStudy:
    """Make one study with its truth and report."""
    plan = make_study_plan(*lesions, **study)
    patient_plan = make_patient_plan(plan, **(patient or {}))
    return PhantomStudy(patient_plan, plan, *make_study(patient_plan, plan, PhantomOptions(size=size), seed))


@pytest.fixture(scope="session")
def chest() -> SimpleNamespace:
    """Functions that make plans, and radiographs and studies from them."""
    return SimpleNamespace(
        lesion=make_lesion,
        device=make_device,
        study=make_study_plan,
        patient=make_patient_plan,
        take_radiograph=take_radiograph,
        make_phantom=make_phantom,
    )


@pytest.fixture
def beams(monkeypatch: pytest.MonkeyPatch) -> Iterator[list]:
    """The beams of the radiographs that are taken in a test, in order."""
    recorded: list = []
    real = radiograph.make_beam

    def record_beam(*args: object, **kwargs: object) -> object:
        recorded.append(real(*args, **kwargs))
        return recorded[-1]

    monkeypatch.setattr(radiograph, "make_beam", record_beam)
    return recorded

"""What an explainer gets of a case, and what a case keeps for the scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carina.cases import Benchmark, Case
from carina.errors import BenchmarkError
from carina.ground.explain.explainer import Asked
from carina.ground.probes import PHRASE
from carina.studies import Region


@dataclass(frozen=True)
class Probed:
    """A ground case, taken apart."""

    target: str
    phrase: str
    truth: Region | None
    lungs: Region | None


def asked_of(case: Case) -> Probed:
    """The parts of a ground case; an error for any other."""
    if case.protocol != "ground" or case.target is None or len(case.images) != 1:
        raise BenchmarkError(f"case {case.id}: is not a probe of one image, made by carina build ground")
    roles = {fact.text: fact.about for fact in case.facts if fact.name == "role"}
    drawn = {role: case.region(roles[role]).region if role in roles else None for role in ("truth", "lungs")}
    phrases = [fact.text for fact in case.facts if fact.name == PHRASE and fact.text]
    return Probed(case.target, phrases[0] if phrases else case.target, drawn["truth"], drawn["lungs"])


def asked(case: Case, image: NDArray[np.uint8]) -> Asked:
    """The probe of a case, with the pixels of its image."""
    probed = asked_of(case)
    return Asked(
        case=case.id,
        patient=case.patient,
        target=probed.target,
        phrase=probed.phrase,
        image=image,
        truth=probed.truth,
        lungs=probed.lungs,
    )


def grey(bench: Benchmark, case: Case) -> NDArray[np.uint8]:
    """The image of a case as a model gets it: grey, 0 black."""
    (image,) = case.images
    if image.finished:
        raise BenchmarkError(f"case {case.id}: {image.key} is a finished picture; expected a radiograph")
    return bench.pixels(image)

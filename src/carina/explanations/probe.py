"""Make probes from cases of the ground protocol."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carina.cases import Benchmark, Case
from carina.explanations.explainer import Probe
from carina.ground.facts import GroundCaseFacts
from carina.store.errors import BenchmarkError
from carina.studies import Region


@dataclass(frozen=True)
class ProbeCase:
    """Target, phrase and regions of a ground case, without pixels."""

    target: str
    phrase: str
    truth: Region | None
    lungs: Region | None


def read_probe_case(case: Case) -> ProbeCase:
    """The target, phrase and regions of a ground case.

    Raises:
        BenchmarkError: The case is not a probe of a single image.
    """
    if case.protocol != "ground" or case.target is None or len(case.images) != 1:
        raise BenchmarkError(
            f"case {case.id}: expected a probe of one image, as `carina build ground` makes them; found a case of "
            f"protocol {case.protocol!r} with {len(case.images)} images"
        )
    facts = GroundCaseFacts.of(case)
    truth, lungs = (_region(case, facts.region(role)) for role in ("truth", "lungs"))
    return ProbeCase(case.target, facts.phrase or case.target, truth, lungs)


def _region(case: Case, name: str | None) -> Region | None:
    return None if name is None else case.region(name).region


def make_probe(case: Case, image: NDArray[np.uint8]) -> Probe:
    """The probe of a ground case, with the pixels of its image."""
    content = read_probe_case(case)
    return Probe(
        case=case.id,
        patient=case.patient,
        target=content.target,
        phrase=content.phrase,
        image=image,
        truth=content.truth,
        lungs=content.lungs,
    )


def read_grey_pixels(bench: Benchmark, case: Case) -> NDArray[np.uint8]:
    """The image of a ground case as models get it: grey, 0 is black."""
    (image,) = case.images
    if image.finished:
        raise BenchmarkError(
            f"case {case.id}: {image.key} is a rendered image with drawings; expected a radiograph"
        )
    return bench.pixels(image)

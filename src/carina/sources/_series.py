"""The studies of a patient in order of time."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a study stands among the studies of its patient."""

    order: int | None
    prior: str | None
    later: str | None


UNKNOWN = Place(None, None, None)


def order_studies(studies: Iterable[tuple[str, Hashable, Any]]) -> Mapping[str, Place]:
    """Order studies in time.

    Args:
        studies: Id of the study, id of the patient, and the time: anything that can be compared, or None where it is
            unknown.

    Returns:
        The place of each study. It is unknown for all studies of a patient of whom one time is unknown, or two are
        equal: which of them is the prior cannot be told.
    """
    by_patient: defaultdict[Hashable, list[tuple[Any, str]]] = defaultdict(list)
    for study, patient, time in studies:
        by_patient[patient].append((time, study))
    places: dict[str, Place] = {}
    for own in by_patient.values():
        times = [time for time, _ in own]
        if None in times or len(set(times)) < len(times):
            places.update(dict.fromkeys((study for _, study in own), UNKNOWN))
            continue
        ids = [study for _, study in sorted(own, key=lambda one: one[0])]
        for order, study in enumerate(ids):
            prior = ids[order - 1] if order else None
            places[study] = Place(order, prior, ids[order + 1] if order + 1 < len(ids) else None)
    return places

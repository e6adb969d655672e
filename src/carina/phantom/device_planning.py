"""Which tubes, lines and implants a patient has in each study, and whether their position is adequate.

Except for the chest tube, which drains a pneumothorax or effusion, devices are independent of the
findings: a tube in the image must not reveal them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from carina.phantom.options import Mix
from carina.phantom.placement import is_side_shared
from carina.phantom.plan import DevicePlan, LesionPlan, RelationPlan
from carina.phantom.sampling import sample_key, sample_persistent
from carina.phantom.technique import Setting
from carina.studies.vocabulary import Side

STILL_IN = 0.75
"""Probability that the next bedside study has the same bedside devices; otherwise they are sampled again."""
WITH_TUBE = 0.8
"""Probability of a nasogastric tube, and of a central line, in an intubated patient (if their shares allow it)."""
UPRIGHT_LINE = 0.1
"""Frequency of central lines (ports, long-term lines) in upright studies relative to bedside studies."""
PACEMAKER_AGE = 60
DRAINED_EFFUSION = 0.2
"""Probability of a chest tube for an effusion, relative to that for a pneumothorax."""
TUBE_STAYS = 0.8
"""Probability that the next bedside study still has the chest tube, while there is something to drain."""
TUBE_AFTER = 0.4
"""The same if the drained lesion has resolved since the prior study."""
CORRECTED = 0.5
"""Probability that a malpositioned device has been corrected by the next study."""
IMPLANT_RISK = 1.0 / 3.0
"""Frequency of malpositioned pacemaker leads relative to that of malpositioned tubes and lines."""

SIDES_OF: Final[dict[str, dict[Side, float]]] = {
    "endotracheal tube": {"midline": 1.0},
    "nasogastric tube": {"midline": 1.0},
    "central venous line": {"right": 0.72, "left": 0.28},
    "pacemaker": {"left": 0.87, "right": 0.13},
}


DeviceRequest = tuple[str, Side | None]
"""Name of a device in a study, and its side; None where the side is sampled."""


def plan_devices(
    r: np.random.Generator,
    settings: Sequence[Setting],
    lesions: Sequence[Sequence[LesionPlan]],
    age: int,
    mix: Mix,
) -> list[tuple[DevicePlan, ...]]:
    """Plan the devices of each of a patient's studies, in the order of `vocabulary.DEVICES`."""
    n = len(settings)
    # One uniform number per study for each of endotracheal tube, nasogastric tube and line, compared with its share.
    uniforms = list(zip(*(sample_persistent(r, n, keep=STILL_IN) for _ in range(3)), strict=True))
    implanted = _sample_implant_order(r, n, age, mix)
    plans: list[tuple[DevicePlan, ...]] = []
    inserted = 0
    for order, setting in enumerate(settings):
        prior = plans[-1] if plans else ()
        requests: list[DeviceRequest] = [
            (name, None) for name in _select_bedside_devices(uniforms[order], setting, mix)
        ]
        if order >= implanted:
            requests.append(("pacemaker", None))
        if setting.is_portable:
            before = lesions[order - 1] if order > 0 else ()
            requests += [
                ("chest tube", side) for side in _select_drained_sides(r, lesions[order], before, prior, mix)
            ]
        devices = []
        for request in requests:
            old = _find_prior_device(request, prior)
            if old is None:
                inserted += 1
                devices.append(_insert_device(r, f"d{inserted}", request, mix, first=order == 0))
            else:
                devices.append(_update_device(r, old, mix))
        plans.append(tuple(devices))
    return plans


def relate_chest_tubes(
    devices: Sequence[DevicePlan], lesions: Sequence[LesionPlan]
) -> tuple[RelationPlan, ...]:
    """Relate each chest tube to the pneumothorax, or else the effusion, that it drains."""
    relations = []
    for device in devices:
        if device.name != "chest tube":
            continue
        drained = [lesion for lesion in _select_pleural(lesions) if is_side_shared(lesion.side, device.side)]
        if drained:
            target = max(drained, key=lambda lesion: lesion.name == "pneumothorax")
            relations.append(RelationPlan(subject=device.key, kind="accompanies", object=target.key))
    return tuple(relations)


def compute_conditional_share(share: float, leader_share: float, *, leader: bool) -> float:
    """Probability of a device given that another one, the leader, is present or not, so that it has `share` overall.

    With the leader the probability is `WITH_TUBE`, or as close to it as `share` permits.
    """
    if leader_share <= 0.0 or leader_share >= 1.0:
        return share
    with_leader = min(max(WITH_TUBE, share), share / leader_share)
    return with_leader if leader else (share - leader_share * with_leader) / (1.0 - leader_share)


def _find_prior_device(request: DeviceRequest, prior: Sequence[DevicePlan]) -> DevicePlan | None:
    name, side = request
    return next((device for device in prior if device.name == name and side in (None, device.side)), None)


def _select_bedside_devices(uniforms: tuple[float, ...], setting: Setting, mix: Mix) -> list[str]:
    tube, gastric, line = uniforms
    tube_share = mix.devices.get("endotracheal tube", 0.0)
    line_share = mix.devices.get("central venous line", 0.0)
    if not setting.is_portable:
        return ["central venous line"] if line < line_share * UPRIGHT_LINE else []
    intubated = tube < tube_share
    names = ["endotracheal tube"] if intubated else []
    if gastric < compute_conditional_share(
        mix.devices.get("nasogastric tube", 0.0), tube_share, leader=intubated
    ):
        names.append("nasogastric tube")
    if line < compute_conditional_share(line_share, tube_share, leader=intubated):
        names.append("central venous line")
    return names


def _sample_implant_order(r: np.random.Generator, n: int, age: int, mix: Mix) -> int:
    """Sample the order of the first study with a pacemaker; `n` for none."""
    uniform, when = r.random(), r.random()
    if age < PACEMAKER_AGE or uniform >= mix.devices.get("pacemaker", 0.0):
        return n
    # Usually before the first study, otherwise between two studies.
    return max(0, int((2.0 * when - 1.0) * n))


def _select_drained_sides(
    r: np.random.Generator,
    now: Sequence[LesionPlan],
    before: Sequence[LesionPlan],
    prior: Sequence[DevicePlan],
    mix: Mix,
) -> list[Side]:
    sides: tuple[Side, Side] = ("right", "left")
    tubes = {device.side for device in prior if device.name == "chest tube"}
    return [side for side in sides if r.random() < _compute_tube_probability(side, now, before, tubes, mix)]


def _compute_tube_probability(
    side: Side, now: Sequence[LesionPlan], before: Sequence[LesionPlan], tubes: set[Side], mix: Mix
) -> float:
    here = [lesion for lesion in _select_pleural(now) if is_side_shared(lesion.side, side)]
    if side in tubes:
        if here:
            return TUBE_STAYS
        return (
            TUBE_AFTER
            if any(is_side_shared(lesion.side, side) for lesion in _select_pleural(before))
            else 0.0
        )
    # Uncertain lesions are not drained.
    names = {lesion.name for lesion in here if lesion.certainty == "present"}
    share = mix.devices.get("chest tube", 0.0)
    if "pneumothorax" in names:
        return share
    return share * DRAINED_EFFUSION if names else 0.0


def _select_pleural(lesions: Sequence[LesionPlan]) -> list[LesionPlan]:
    return [lesion for lesion in lesions if lesion.name in ("pneumothorax", "pleural effusion")]


def _insert_device(
    r: np.random.Generator, key: str, request: DeviceRequest, mix: Mix, *, first: bool
) -> DevicePlan:
    name, fixed = request
    side: Side = sample_key(r, SIDES_OF[name]) if fixed is None else fixed
    return DevicePlan(
        key=key,
        name=name,
        side=side,
        adequate=r.random() >= _compute_malposition_probability(name, mix),
        depth=_sample_depth(r),
        trend=None if first else "new",
    )


def _update_device(r: np.random.Generator, old: DevicePlan, mix: Mix) -> DevicePlan:
    """The device at the next study: unchanged, corrected, or newly malpositioned.

    Devices move out of place as often as they are corrected, so the share of malpositioned ones is constant.
    """
    probability = _compute_malposition_probability(old.name, mix)
    if old.name == "pacemaker" or not 0.0 < probability < 1.0:
        return replace(old, trend="unchanged")
    moves = r.random() < (
        CORRECTED * min(1.0, probability / (1.0 - probability)) if old.adequate else CORRECTED
    )
    if not moves:
        return replace(old, trend="unchanged")
    return replace(
        old, adequate=not old.adequate, depth=_sample_depth(r), trend="worse" if old.adequate else "improved"
    )


def _compute_malposition_probability(name: str, mix: Mix) -> float:
    return mix.malpositioned * (IMPLANT_RISK if name == "pacemaker" else 1.0)


def _sample_depth(r: np.random.Generator) -> float:
    return round(r.random(), 3)

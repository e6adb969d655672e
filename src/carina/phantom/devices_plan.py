"""Which tubes, lines and implants a patient has in each study, and whether their tips lie well.

But for the chest tube, which drains a pneumothorax or effusion, devices are chosen without knowing the
findings: a tube in the picture must not give the answer away.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from carina.phantom.chance import pick, sticky
from carina.phantom.options import Mix
from carina.phantom.placement import sides_meet
from carina.phantom.plan import DevicePlan, LesionPlan, RelationPlan
from carina.phantom.technique import Setting
from carina.studies.vocabulary import Side

STILL_IN = 0.75
"""Chance that bedside devices are as they were at the next bedside study; else they are drawn anew."""
WITH_TUBE = 0.8
"""Chance of a nasogastric tube, and of a central line, in an intubated patient (if their shares allow it)."""
UPRIGHT_LINE = 0.1
"""A central line is this much rarer in an upright study: a port or a long-term line."""
PACEMAKER_AGE = 60
DRAINED_EFFUSION = 0.2
"""Chance of a chest tube for an effusion, as a part of that for a pneumothorax."""
TUBE_STAYS = 0.8
"""Chance that a chest tube is still in at the next bedside study while there is something to drain."""
TUBE_AFTER = 0.4
"""The same when the last of it has just gone."""
CORRECTED = 0.5
"""Chance that a tip found out of place has been put right by the next study."""
IMPLANT_RISK = 1.0 / 3.0
"""A pacemaker lead is this much less often out of place than the tip of a tube or line."""

SIDES_OF: Final[dict[str, dict[Side, float]]] = {
    "endotracheal tube": {"midline": 1.0},
    "nasogastric tube": {"midline": 1.0},
    "central venous line": {"right": 0.72, "left": 0.28},
    "pacemaker": {"left": 0.87, "right": 0.13},
}


Wanted = tuple[str, Side | None]
"""A device that a study shows, and its side where that is not free to choose."""


def plan_devices(
    r: np.random.Generator,
    settings: Sequence[Setting],
    lesions: Sequence[Sequence[LesionPlan]],
    age: int,
    mix: Mix,
) -> list[tuple[DevicePlan, ...]]:
    """The devices of each of a patient's studies, in the order of `vocabulary.DEVICES`."""
    n = len(settings)
    # One number for each of tube, gastric tube and line in each study, to hold against its share.
    chances = list(zip(*(sticky(r, n, keep=STILL_IN) for _ in range(3)), strict=True))
    implanted = _implanted_at(r, n, age, mix)
    plans: list[tuple[DevicePlan, ...]] = []
    inserted = 0
    for order, setting in enumerate(settings):
        prior = plans[-1] if plans else ()
        wanted: list[Wanted] = [(name, None) for name in _bedside(chances[order], setting, mix)]
        if order >= implanted:
            wanted.append(("pacemaker", None))
        if setting.portable:
            before = lesions[order - 1] if order > 0 else ()
            wanted += [("chest tube", side) for side in _drained(r, lesions[order], before, prior, mix)]
        devices = []
        for want in wanted:
            old = _same(want, prior)
            if old is None:
                inserted += 1
                devices.append(_insert(r, f"d{inserted}", want, mix, first=order == 0))
            else:
                devices.append(_carry(r, old, mix))
        plans.append(tuple(devices))
    return plans


def relate_tubes(devices: Sequence[DevicePlan], lesions: Sequence[LesionPlan]) -> tuple[RelationPlan, ...]:
    """Each chest tube with the pneumothorax, or else the effusion, that it drains."""
    relations = []
    for device in devices:
        if device.name != "chest tube":
            continue
        drained = [lesion for lesion in _pleural(lesions) if sides_meet(lesion.side, device.side)]
        if drained:
            target = max(drained, key=lambda lesion: lesion.name == "pneumothorax")
            relations.append(RelationPlan(subject=device.key, kind="accompanies", object=target.key))
    return tuple(relations)


def share_given(share: float, leader_share: float, *, leader: bool) -> float:
    """Chance of a companion with or without its leader, such that it has `share` of all.

    With the leader the chance is `WITH_TUBE`, or as near to it as `share` permits.
    """
    if leader_share <= 0.0 or leader_share >= 1.0:
        return share
    with_leader = min(max(WITH_TUBE, share), share / leader_share)
    return with_leader if leader else (share - leader_share * with_leader) / (1.0 - leader_share)


def _same(want: Wanted, prior: Sequence[DevicePlan]) -> DevicePlan | None:
    name, side = want
    return next((device for device in prior if device.name == name and side in (None, device.side)), None)


def _bedside(chances: tuple[float, ...], setting: Setting, mix: Mix) -> list[str]:
    tube, gastric, line = chances
    tube_share = mix.devices.get("endotracheal tube", 0.0)
    line_share = mix.devices.get("central venous line", 0.0)
    if not setting.portable:
        return ["central venous line"] if line < line_share * UPRIGHT_LINE else []
    intubated = tube < tube_share
    names = ["endotracheal tube"] if intubated else []
    if gastric < share_given(mix.devices.get("nasogastric tube", 0.0), tube_share, leader=intubated):
        names.append("nasogastric tube")
    if line < share_given(line_share, tube_share, leader=intubated):
        names.append("central venous line")
    return names


def _implanted_at(r: np.random.Generator, n: int, age: int, mix: Mix) -> int:
    """Order of the first study with a pacemaker; `n` for never."""
    chance, when = r.random(), r.random()
    if age < PACEMAKER_AGE or chance >= mix.devices.get("pacemaker", 0.0):
        return n
    # Mostly long since there; else put in between two of the studies.
    return max(0, int((2.0 * when - 1.0) * n))


def _drained(
    r: np.random.Generator,
    now: Sequence[LesionPlan],
    before: Sequence[LesionPlan],
    prior: Sequence[DevicePlan],
    mix: Mix,
) -> list[Side]:
    sides: tuple[Side, Side] = ("right", "left")
    tubes = {device.side for device in prior if device.name == "chest tube"}
    return [side for side in sides if r.random() < _tube_chance(side, now, before, tubes, mix)]


def _tube_chance(
    side: Side, now: Sequence[LesionPlan], before: Sequence[LesionPlan], tubes: set[Side], mix: Mix
) -> float:
    here = [lesion for lesion in _pleural(now) if sides_meet(lesion.side, side)]
    if side in tubes:
        if here:
            return TUBE_STAYS
        return TUBE_AFTER if any(sides_meet(lesion.side, side) for lesion in _pleural(before)) else 0.0
    # Nobody drains what may not be there.
    names = {lesion.name for lesion in here if lesion.certainty == "present"}
    share = mix.devices.get("chest tube", 0.0)
    if "pneumothorax" in names:
        return share
    return share * DRAINED_EFFUSION if names else 0.0


def _pleural(lesions: Sequence[LesionPlan]) -> list[LesionPlan]:
    return [lesion for lesion in lesions if lesion.name in ("pneumothorax", "pleural effusion")]


def _insert(r: np.random.Generator, key: str, want: Wanted, mix: Mix, *, first: bool) -> DevicePlan:
    name, fixed = want
    side: Side = pick(r, SIDES_OF[name]) if fixed is None else fixed
    return DevicePlan(
        key=key,
        name=name,
        side=side,
        adequate=r.random() >= _risk(name, mix),
        depth=_depth(r),
        trend=None if first else "new",
    )


def _carry(r: np.random.Generator, old: DevicePlan, mix: Mix) -> DevicePlan:
    """The device at the next study: as it was, put right, or slipped.

    It slips as often as it is put right, so that the share of tips out of place stays what it is.
    """
    risk = _risk(old.name, mix)
    if old.name == "pacemaker" or not 0.0 < risk < 1.0:
        return replace(old, trend="unchanged")
    moves = r.random() < (CORRECTED * min(1.0, risk / (1.0 - risk)) if old.adequate else CORRECTED)
    if not moves:
        return replace(old, trend="unchanged")
    return replace(
        old, adequate=not old.adequate, depth=_depth(r), trend="worse" if old.adequate else "improved"
    )


def _risk(name: str, mix: Mix) -> float:
    return mix.malpositioned * (IMPLANT_RISK if name == "pacemaker" else 1.0)


def _depth(r: np.random.Generator) -> float:
    return round(r.random(), 3)

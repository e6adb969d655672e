"""A parametric adult thorax: the solids of a patient, given habitus, posture and inspiration.

Sizes are adult means in centimetres, scaled by habitus. z = 0 is the level of T10, the height of the right dome of
the diaphragm at full inspiration; the carina is near z = 15 and the lung apices near z = 24.
"""

from dataclasses import dataclass

import numpy as np

from carina.phantom.beam import Beam, make_beam
from carina.phantom.habitus import Habitus
from carina.phantom.plan import PatientPlan
from carina.phantom.skeleton import Skeleton, build_skeleton
from carina.phantom.solids import Ellipsoid, Tube, Vector, ellipsoid, smooth_curve, tube
from carina.store.seeding import rng

GENERATIONS = 7
FINEST_CM = 0.05
# Directions of the lobar arteries and veins as (outward, forward, up), upper to lower lobes.
_LOBAR = np.array(
    [
        (0.45, -0.25, 1.0),
        (0.75, 0.35, 0.75),
        (0.95, -0.35, 0.35),
        (0.95, 0.45, -0.15),
        (0.70, 0.10, -0.75),
        (0.45, -0.35, -1.0),
        (0.25, 0.30, -0.95),
        (0.60, -0.55, -0.70),
        (0.85, 0.0, -0.40),
        (0.25, 0.15, 1.0),
    ]
)
_LOBAR_RADIUS = np.array([0.38, 0.34, 0.32, 0.32, 0.46, 0.58, 0.44, 0.42, 0.34, 0.32])


@dataclass(frozen=True)
class State:
    """What differs between studies of one patient, or between images of one study."""

    inspiration: float = 0.8
    supine: bool = False
    cardiothoracic_ratio: float | None = None
    """Ratio of an enlarged heart; None for the patient's usual ratio."""
    left_ventricular: bool = False
    shift: float = 0.0
    """Shift of the mediastinum to the patient's left, cm."""
    raised: tuple[float, float] = (0.0, 0.0)
    """Elevation of the right and left dome by volume loss, cm."""
    congestion: float = 0.0
    """Widening of the vessels, 0-1."""


@dataclass(frozen=True)
class Thorax:
    """All solids of one patient in one state."""

    habitus: Habitus
    torso: tuple[Ellipsoid, ...]
    lean_torso: tuple[Ellipsoid, ...]
    """The torso without subcutaneous fat."""
    shoulders: tuple[Ellipsoid, ...]
    breasts: tuple[Ellipsoid, ...]
    arms: tuple[Ellipsoid, ...]
    lungs: tuple[Ellipsoid, Ellipsoid]
    """Right and left pleural cavity, before heart, mediastinum and diaphragm are subtracted."""
    domes: tuple[Ellipsoid, Ellipsoid]
    central_tendon: Ellipsoid
    """The middle part of the diaphragm, below the heart."""
    heart: tuple[Ellipsoid, ...]
    mediastinum: tuple[Ellipsoid, ...]
    paraspinal: tuple[Ellipsoid, ...]
    """Soft tissue around the spine, with the descending aorta."""
    gas: tuple[Ellipsoid, ...]
    skeleton: Skeleton
    trachea: Tube
    bronchi: tuple[Tube, Tube]
    vessels: tuple[tuple[Tube, ...], tuple[Tube, ...]]
    hila: tuple[Vector, Vector]
    hilar_soft_tissue: tuple[Ellipsoid, ...]
    carina: Vector


def build_thorax(patient: PatientPlan, habitus: Habitus, state: State, seed: int) -> Thorax:
    """Build all solids of a patient in one state, in the patient frame."""
    s, w, d = habitus.scale, habitus.width, habitus.depth
    breath = 1.0 - state.inspiration
    lift = 5.2 * s * breath + (0.8 if state.supine else 0.0)
    squeeze = round(1.0 - 0.05 * breath, 2)  # rounded, so that the cached skeleton fits the next image
    dome_top = (lift + state.raised[0], lift - habitus.asymmetry + state.raised[1])
    lungs = (_build_pleural_cavity(-1, s, w * squeeze, d), _build_pleural_cavity(1, s, w * squeeze, d))
    heart, mediastinum, paraspinal = (
        _build_heart(habitus, state, lungs, lift),
        _build_mediastinum(habitus, state),
        _build_paraspinal(habitus),
    )
    carina = np.array([0.3 + 0.6 * state.shift, -3.0, 15.2 * s])
    hila = (
        np.array([-3.9 + 0.8 * state.shift, -1.5, (10.6 + 0.25 * lift) * s + 0.35 * state.raised[0]]),
        np.array([4.3 + 0.8 * state.shift, -1.8, (11.8 + 0.25 * lift) * s + 0.35 * state.raised[1]]),
    )
    domes = tuple(_build_dome(side, w, d, top) for side, top in zip((-1, 1), dome_top, strict=True))
    vessels = tuple(
        _grow_vessels(
            lungs[k],
            domes[k],
            hila[k],
            congestion=state.congestion,
            generator=rng(seed, patient.id, "vessels", k),
        )
        for k in (0, 1)
    )
    torso, lean_torso, shoulders, breasts, arms = _build_body(habitus, state)
    return Thorax(
        habitus=habitus,
        torso=torso,
        lean_torso=lean_torso,
        shoulders=shoulders,
        breasts=breasts,
        arms=arms,
        lungs=lungs,
        domes=(domes[0], domes[1]),
        central_tendon=ellipsoid((0.5 * state.shift, 1.5, lift - 12.5), (0.55 * w, 1.15 * d, 12.0)),
        heart=heart,
        mediastinum=mediastinum,
        paraspinal=paraspinal,
        gas=_build_gas(habitus, dome_top[1], state, rng(seed, patient.id, "gas")),
        skeleton=build_skeleton(habitus, squeeze=squeeze, supine=state.supine),
        trachea=tube(
            smooth_curve(
                [(0.0, 0.8, 36 * s), (0.1, -1.2, 24 * s), (0.2 + 0.4 * state.shift, -2.2, 19 * s), carina]
            ),
            0.9,
        ),
        bronchi=(
            tube(
                smooth_curve([carina, carina + (-1.6, -0.2, -1.5), hila[0] + (-0.6, -1.2, 0.6)]),
                np.linspace(0.7, 0.5, 48),
            ),
            tube(
                smooth_curve([carina, carina + (2.0, -0.3, -1.2), hila[1] + (0.8, -1.2, -0.4)]),
                np.linspace(0.62, 0.45, 48),
            ),
        ),
        vessels=(vessels[0], vessels[1]),
        hila=hila,
        hilar_soft_tissue=tuple(
            ellipsoid(h + (0.2 * side, 0, -0.3), (0.95, 1.2, 1.9), tilt_degrees=(0, side * 14, 0))
            for h, side in zip(hila, (-1, 1), strict=True)
        ),
        carina=carina,
    )


def _build_pleural_cavity(side: int, s: float, w: float, d: float) -> Ellipsoid:
    # The long axis is tilted to the midline: the apex is medial and the base wide.
    return ellipsoid(
        (side * 0.5 * w, -0.4, 3.0 * s), (0.505 * w, 0.96 * d, 21.6 * s), tilt_degrees=(2.0, -side * 5.2, 0)
    )


def _build_dome(side: int, w: float, d: float, top: float) -> Ellipsoid:
    # Shaped to meet the chest wall about 4 cm below its top at the side, 5 behind and 2 in front.
    return ellipsoid((side * 0.46 * w, 1.5, top - 12.0), (0.69 * w, 1.37 * d, 12.0))


def _build_heart(
    habitus: Habitus, state: State, lungs: tuple[Ellipsoid, Ellipsoid], lift: float
) -> tuple[Ellipsoid, ...]:
    """Ventricles, atria and outflow tract, scaled to the wanted cardiothoracic ratio on an unrotated PA view."""
    wanted = state.cardiothoracic_ratio or habitus.cardiothoracic_ratio
    lie = 36.0 - 2.2 * lift  # a raised diaphragm makes the heart more horizontal
    base = 4.2 * habitus.scale + 0.8 * lift
    long, short = (7.3, 4.7) if state.left_ventricular else (6.8, 4.9)
    parts = (
        ellipsoid((2.1, 3.0, base), (long, 5.2, short), tilt_degrees=(0, lie, 12)),
        ellipsoid((-1.7, 1.8, base + 0.5), (3.1, 3.7, 4.9), tilt_degrees=(0, 8, 0)),
        ellipsoid((0.7, -0.2, base + 1.4), (4.6, 4.8, 5.2)),
        ellipsoid((1.5, 1.8, base + 2.9), (3.2, 3.2, 4.6), tilt_degrees=(0, 26, 0)),
    )
    straight = make_beam(
        "PA",
        size=1024,
        field_cm=3.0 * habitus.width,
        centre=np.array([0.0, 0.0, 9.6 * habitus.scale]),
        half_depth=habitus.depth + 4.0,
        half_width=habitus.width + 5.0,
    )
    thorax_width = _measure_width(straight, lungs)
    factor = 1.0
    # The width is nearly linear in the factor: four corrections leave no visible error.
    for _ in range(4):
        factor *= (
            wanted * thorax_width / _measure_width(straight, _enlarge_heart(parts, factor, base, state.shift))
        )
    return _enlarge_heart(parts, factor, base, state.shift)


def _measure_width(beam: Beam, solids: tuple[Ellipsoid, ...]) -> float:
    bounds = [beam.bounds(solid) for solid in solids]
    return max(b[1] for b in bounds) - min(b[0] for b in bounds)


def _enlarge_heart(
    parts: tuple[Ellipsoid, ...], factor: float, base: float, shift: float
) -> tuple[Ellipsoid, ...]:
    # An enlarged heart is mainly wider, and also a little taller and deeper.
    grow = np.array([factor, 1 + 0.45 * (factor - 1), 1 + 0.5 * (factor - 1)])
    anchor = np.array([0.0, 2.5, base - 3.5])
    return tuple(
        Ellipsoid(anchor + grow * (part.centre - anchor) + (shift, 0, 0), grow[:, None] * part.axes)
        for part in parts
    )


def _build_mediastinum(habitus: Habitus, state: State) -> tuple[Ellipsoid, ...]:
    s, a = habitus.scale, habitus.aorta
    wide = 1.12 if state.supine else 1.0
    x = state.shift
    return (
        ellipsoid((0.1 + 0.7 * x, 0.3, 19.5 * s), (2.45 * wide, 4.6, 15.0 * s)),
        ellipsoid((-1.5 + x, 2.0, 13.0 * s), (1.7 * a * wide, 2.0, 7.5 * s), tilt_degrees=(0, 3, 0)),
        ellipsoid((2.05 + 0.8 * x, -1.2, 16.4 * s), (1.75 * a, 3.4, 1.75 * a)),
        ellipsoid((1.9 + x, 1.6, 12.8 * s), (1.75, 2.2, 2.9), tilt_degrees=(0, 20, 0)),
    )


def _build_paraspinal(habitus: Habitus) -> tuple[Ellipsoid, ...]:
    s, a = habitus.scale, habitus.aorta
    return (
        ellipsoid((0, -7.6, 6 * s), (1.75, 2.4, 60)),
        ellipsoid(
            (1.55 + 0.5 * (a - 1), -4.9, 6.5 * s), (1.3 * a, 1.4 * a, 14 * s), tilt_degrees=(0, 2.0, 0)
        ),
    )


def _build_gas(
    habitus: Habitus, dome: float, state: State, generator: np.random.Generator
) -> tuple[Ellipsoid, ...]:
    """The gastric bubble, and in some patients gas in the colon."""
    bubbles = []
    if generator.random() < (0.5 if state.supine else 0.85):
        width = generator.uniform(1.6, 3.6)
        flat = 0.9 if state.supine else 0.5
        depth = dome - 1.4 - flat * width
        bubbles.append(
            ellipsoid(
                (generator.uniform(4.5, 7.0), 1.0, depth), (width, 1.6, flat * width), tilt_degrees=(0, 8, 0)
            )
        )
    for _ in range(int(generator.integers(0, 3))):
        at = (
            generator.uniform(4.0, 10.0) * habitus.width / 14,
            generator.uniform(0, 4),
            dome - generator.uniform(4.0, 8.0),
        )
        bubbles.append(
            ellipsoid(at, generator.uniform(0.5, 1.5, 3), tilt_degrees=generator.uniform(-40, 40, 3))
        )
    return tuple(bubbles)


def _build_body(habitus: Habitus, state: State) -> tuple[tuple[Ellipsoid, ...], ...]:
    """Torso, torso without fat, shoulders, breasts and arms."""
    s, w, d = habitus.scale, habitus.width, habitus.depth
    wall = habitus.muscle
    lean_torso = (
        ellipsoid((0, -0.4, -9 * s), (w + 0.9 + wall, d + 0.5 + 0.6 * wall, 38 * s)),
        ellipsoid((0, -0.8, 2 * s), (w + 0.2 + wall, d + 0.2 + 0.6 * wall, 25 * s)),
        ellipsoid((0, -0.5, 38 * s), (5.6, 6.0, 19 * s)),
    )
    lift = 1.5 if state.supine else 0.0
    shoulders = (
        *(
            ellipsoid(
                (side * (0.62 * w), -1.8, 18.8 * s + lift),
                (w * 0.95, 6.0, 5.4 * s),
                tilt_degrees=(0, side * 9, 0),
            )
            for side in (-1, 1)
        ),
        ellipsoid((0, -2.4, 23.5 * s + lift), (8.0, 5.0, 8.0 * s)),
        # Latissimus and the wall of the axilla: soft tissue beside the lungs.
        *(
            ellipsoid(
                (side * (w + 0.9), -2.2, 9.5 * s),
                (2.1 + wall + 0.5 * habitus.fat, 6.4 + 0.4 * habitus.fat, 15.0 * s),
                tilt_degrees=(0, side * 3, 0),
            )
            for side in (-1, 1)
        ),
    )
    torso = tuple(
        Ellipsoid(e.centre, e.axes * ((np.diag(e.axes) + habitus.fat) / np.diag(e.axes))) for e in lean_torso
    )
    breasts: tuple[Ellipsoid, ...] = ()
    if habitus.breast > 0:
        b = habitus.breast
        hang = 0.0 if state.supine else 1.2
        breasts = tuple(
            ellipsoid((side * 0.5 * w, d - 0.3, 5.0 * s - hang), (1.15 * b, 0.5 * b, 1.0 * b))
            for side in (-1, 1)
        )
    spread = 17.5 if state.supine else 9.0
    arms = tuple(
        ellipsoid(
            (side * (w + 7.2 + 0.6 * habitus.fat), -1.0, 2.5 * s),
            (3.4 + 0.7 * habitus.fat, 3.6 + 0.7 * habitus.fat, 23.0 * s),
            tilt_degrees=(0, -side * spread, 0),
        )
        for side in (-1, 1)
    )
    return torso, lean_torso, shoulders, breasts, arms


def _grow_vessels(
    cavity: Ellipsoid, dome: Ellipsoid, hilum: Vector, *, congestion: float, generator: np.random.Generator
) -> tuple[Tube, ...]:
    """Pulmonary vessels of one lung, one bundle of tubes per generation; none within 1-2 cm of the pleura."""
    outward = float(np.sign(cavity.centre[0]))
    direction = _LOBAR * np.array([outward, 1.0, 1.0]) + generator.normal(0, 0.12, _LOBAR.shape)
    direction = _normalise(direction)
    start = hilum + direction * np.array([0.3, 0.6, 0.6])
    radius = _LOBAR_RADIUS * generator.normal(1.0, 0.08, len(_LOBAR)) * (1 + 0.25 * congestion)
    length = 2.6 * generator.uniform(0.8, 1.25, len(radius))
    limit = cavity.scale(0.93)
    alive = np.ones(len(radius), bool)
    tubes: list[Tube] = []
    for _ in range(GENERATIONS):
        # Branches that have ended are still computed: the random numbers must not depend on inspiration,
        # or the same patient would have different vessels in the next image.
        bend = generator.normal(0, 0.16, direction.shape)
        middle = start + direction * (0.5 * length)[:, None] + bend * (0.35 * length)[:, None]
        end = start + (direction + 0.5 * bend) * length[:, None]
        alive &= (radius > FINEST_CM) & limit.contains(end) & ~dome.contains(end)
        # Along a branch, the radius falls by about half as much as at its next division.
        taper = radius[alive, None] * np.array([1.0, 0.95, 0.9])
        tubes.append(Tube(np.stack([start[alive], middle[alive], end[alive]], axis=1), taper))
        split = generator.uniform(0.35, 0.65, len(radius))
        axis = _normalise(np.cross(direction, generator.normal(0, 1, direction.shape)))
        angle = generator.uniform(0.28, 0.62, len(radius))[:, None]
        onward = direction * np.cos(angle) + 0.18 * _normalise(end - hilum)
        start = np.concatenate([end, end])
        direction = _normalise(np.concatenate([onward + axis * np.sin(angle), onward - axis * np.sin(angle)]))
        # Murray's cube law: the cubes of the children's radii add up to that of the parent.
        parent = 0.9 * radius
        radius = np.concatenate([parent * split ** (1 / 3), parent * (1 - split) ** (1 / 3)])
        length = np.concatenate([length, length]) * 0.82 * generator.uniform(0.75, 1.25, 2 * len(length))
        alive = np.concatenate([alive, alive])
    return tuple(bundle for bundle in tubes if len(bundle.points))


def _normalise(vectors: Vector) -> Vector:
    return np.asarray(vectors / np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)))

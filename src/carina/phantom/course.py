"""Who the phantom patients are, when they are imaged, and what is seen each time.

A plan depends on the seed, the patient's index and the options only, so that any worker can make any part of
a set. Geometry, pixels and words are made from the plan elsewhere.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from carina.phantom.chance import between, normal_within, pick, sticky
from carina.phantom.cooccurrence import relate
from carina.phantom.devices_plan import plan_devices, relate_tubes
from carina.phantom.evolution import (
    HEALING_DAYS,
    RECOVERY_DAYS,
    SAME_HEALTH,
    Fate,
    Tracked,
    appear,
    certainty_of,
    evolve,
    fate_of,
    first_weights,
    open_chance,
    weights_left,
)
from carina.phantom.options import Mix, PhantomOptions
from carina.phantom.placement import FORMS
from carina.phantom.plan import DevicePlan, Gone, LesionPlan, PatientPlan, RelationPlan, StudyPlan
from carina.phantom.technique import Setting, plan_settings, plan_techniques
from carina.store.seeding import rng
from carina.studies.vocabulary import Sex

__all__ = ["FORMS", "patient_id", "plan_patient", "plan_studies", "study_count", "study_spans"]

STUDIES_WITH_PRIOR = {2: 0.5, 3: 0.38, 4: 0.12}
"""Number of studies of a patient with more than one: half of them have more than two."""

FIRST_DAY = datetime.date(2101, 1, 1)
"""Nobody takes a date of the next century for a real one."""
FIRST_DAYS = 79 * 365
INPATIENT_GAP = (1, 9)
FOLLOW_UP_GAP = (15, 120)
OUTPATIENT_GAP = (40, 1100)

YOUNGEST, OLDEST = 18, 86
"""Ages at the first study; the longest courses end before 96."""
AGE_OF_HEALTHY = 49.0
AGE_OF = {
    "atelectasis": 58.0,
    "cardiomegaly": 69.0,
    "consolidation": 58.0,
    "edema": 69.0,
    "fracture": 54.0,
    "lung opacity": 57.0,
    "mass": 66.0,
    "nodule": 62.0,
    "pleural effusion": 63.0,
    "pneumonia": 57.0,
    "pneumothorax": 46.0,
}
"""Mean age of those who have a finding; the first lesion of a patient decides."""
AGE_SPREAD = 15.0

FEMALE = 0.48
HEIGHT_CM: dict[Sex, tuple[float, float]] = {"F": (163.0, 6.5), "M": (176.5, 7.0)}
HEIGHT_LIMITS = (145.0, 200.0)
BMI, BMI_SPREAD, BMI_LIMITS = 26.5, 4.6, (17.0, 42.0)
BMI_PER_CM = -0.03
RATIO_LIMITS, RATIO_SPREAD = (0.42, 0.48), 0.012
RATIO_PER_BMI = 0.0015
"""A higher diaphragm lays the heart flatter."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """The lesions of one study, and the days since the one before."""

    gap_days: int
    lesions: tuple[Tracked, ...]


def patient_id(index: int) -> str:
    return f"p{index:06d}"


def study_count(seed: int, index: int, options: PhantomOptions) -> int:
    """How many studies a patient has, without planning them."""
    r = rng(seed, patient_id(index), "count")
    return pick(r, STUDIES_WITH_PRIOR) if r.random() < options.mix.with_prior else 1


def study_spans(seed: int, n: int, options: PhantomOptions) -> Iterator[tuple[int, int]]:
    """(index of patient, how many of their studies are in a set of `n`): to share out work unplanned."""
    index, left = 0, n
    while left > 0:
        taken = min(study_count(seed, index, options), left)
        yield index, taken
        index, left = index + 1, left - taken


def plan_studies(
    seed: int, n: int, options: PhantomOptions, *, start: int = 0
) -> Iterator[tuple[PatientPlan, StudyPlan]]:
    """Studies `start` to `n` of a set: patients in the order of their index, studies in that of time.

    Only patients with a study in that range are planned. The first studies of a larger set are the same.
    """
    at = 0
    for index, taken in study_spans(seed, n, options):
        if at + taken > start:
            patient = plan_patient(seed, index, options)
            for study in patient.studies[max(0, start - at) : taken]:
                yield patient, study
        at += taken


def plan_patient(seed: int, index: int, options: PhantomOptions) -> PatientPlan:
    """Everything about one patient, from their body to the trend of each lesion in each study."""
    key, mix = patient_id(index), options.mix
    count = study_count(seed, index, options)
    technique = rng(seed, key, "technique")
    settings = plan_settings(technique, count, mix)
    techniques = [plan_techniques(technique, setting.views, mix) for setting in settings]
    visits = _plan_visits(rng(seed, key, "course"), settings, mix)
    body = rng(seed, key, "body")
    sex: Sex = "F" if body.random() < FEMALE else "M"
    height, bmi, ratio = _plan_body(body, sex)
    # After the body, which is then the same whatever the findings.
    dates, ages = _plan_calendar(body, visits)
    lesions = [tuple(tracked.lesion for tracked in visit.lesions) for visit in visits]
    devices = plan_devices(rng(seed, key, "devices"), settings, lesions, ages[0], mix)
    return PatientPlan(
        id=key,
        index=index,
        sex=sex,
        height_cm=height,
        bmi=bmi,
        cardiothoracic_ratio=ratio,
        studies=tuple(
            StudyPlan(
                id=f"{key}-s{order + 1}",
                order=order,
                date=dates[order],
                age=ages[order],
                supine=settings[order].supine,
                techniques=techniques[order],
                lesions=lesions[order],
                devices=devices[order],
                relations=_relations(visits[order], devices[order]),
                resolved=_gone(lesions, order),
                removed=_gone(devices, order),
                ecg_leads=settings[order].ecg_leads,
            )
            for order in range(count)
        ),
    )


def _plan_body(r: np.random.Generator, sex: Sex) -> tuple[float, float, float]:
    """Height, BMI and cardiothoracic ratio, without a look at the findings: habitus must not tell them."""
    mean, sd = HEIGHT_CM[sex]
    height = normal_within(r, mean=mean, sd=sd, within=HEIGHT_LIMITS)
    # Right-skewed, and a little lower in the tall.
    bmi = BMI + BMI_PER_CM * (height - mean) + BMI_SPREAD * (float(r.standard_gamma(6.0)) - 6.0) / 6.0**0.5
    bmi = min(max(bmi, BMI_LIMITS[0]), BMI_LIMITS[1])
    middle = sum(RATIO_LIMITS) / 2.0 + RATIO_PER_BMI * (bmi - BMI)
    ratio = normal_within(r, mean=middle, sd=RATIO_SPREAD, within=RATIO_LIMITS)
    return round(height, 1), round(bmi, 1), round(ratio, 4)


def _plan_visits(r: np.random.Generator, settings: Sequence[Setting], mix: Mix) -> list[Visit]:
    """The lesions of each study. Whether a study is normal comes first, so that its share is met."""
    count = len(settings)
    normal = [u < mix.normal for u in sticky(r, count, keep=SAME_HEALTH)]
    visits: list[Visit] = []
    seen = 0
    for order in range(count):
        before = visits[-1].lesions if visits else ()
        weights = {}
        if not normal[order]:
            weights = first_weights(
                mix.findings,
                closing=any(normal[order:]),
                open_chance=open_chance(mix.normal, count - 1 - order),
            )
        gap = 0 if order == 0 else _gap_days(r, settings[order - 1], settings[order])
        gap, kept = _carry_over(r, before, gap, weights)
        fresh = []
        if weights:
            fresh = appear(
                r,
                [tracked.lesion for tracked in kept],
                weights,
                prior=[tracked.lesion for tracked in before],
                settled=order == 0 or gap >= HEALING_DAYS,
            )
        for lesion in fresh:
            seen += 1
            keyed = replace(lesion, key=f"l{seen}", trend=None if order == 0 else "new")
            kept.append(Tracked(lesion=keyed, since=order, doubt=r.random()))
        visits.append(Visit(gap_days=gap, lesions=tuple(_hedge(tracked, mix) for tracked in kept)))
    return visits


def _carry_over(
    r: np.random.Generator, before: Sequence[Tracked], gap: int, weights: dict[str, float]
) -> tuple[int, list[Tracked]]:
    """The days since the study before, at least `gap`, and what is left of its lesions.

    `weights` are those of a new finding; a normal study has none.
    """
    fates: list[Fate] = [fate_of(r, tracked.lesion, gap) if weights else "resolved" for tracked in before]
    prior = [tracked.lesion for tracked in before]
    if weights and prior and set(fates) == {"resolved"} and not weights_left(weights, prior):
        # Nothing could be new in this study, yet it is abnormal: the main finding goes on.
        fates[0] = fate_of(r, prior[0], gap, lasting=True)
    # Recovery takes its time: what has resolved puts off the study that no longer shows it.
    for tracked, fate in zip(before, fates, strict=True):
        if fate == "resolved":
            gap = max(gap, RECOVERY_DAYS[tracked.lesion.name] + int(between(r, 0.0, 5.0)))
    kept = [
        replace(tracked, lesion=evolve(r, tracked.lesion, fate, gap))
        for tracked, fate in zip(before, fates, strict=True)
        if fate != "resolved"
    ]
    return gap, kept


def _gap_days(r: np.random.Generator, before: Setting, after: Setting) -> int:
    if before.portable and after.portable:
        low, high = INPATIENT_GAP
    elif before.portable:
        low, high = FOLLOW_UP_GAP
    else:
        low, high = OUTPATIENT_GAP
    # Uniform in the logarithm: most gaps are near the short end.
    return int(low * (high / low) ** r.random())


def _hedge(tracked: Tracked, mix: Mix) -> Tracked:
    if tracked.lesion.trend == "unchanged":
        # As sure as before; also of a fracture, whose healing alone does not make it doubtful.
        return tracked
    certainty = certainty_of(tracked.lesion, tracked.doubt, mix.hedged)
    if certainty == tracked.lesion.certainty:
        return tracked
    return replace(tracked, lesion=replace(tracked.lesion, certainty=certainty))


def _plan_calendar(r: np.random.Generator, visits: Sequence[Visit]) -> tuple[list[datetime.date], list[int]]:
    """The date of each study, and the patient's age on it."""
    first = next((tracked.lesion.name for visit in visits for tracked in visit.lesions), None)
    mean = AGE_OF_HEALTHY if first is None else AGE_OF[first]
    age = normal_within(r, mean=mean, sd=AGE_SPREAD, within=(YOUNGEST, OLDEST))
    date = FIRST_DAY + datetime.timedelta(days=int(between(r, 0.0, FIRST_DAYS)))
    birth = date - datetime.timedelta(days=int(age * 365.25) + 1)
    dates = []
    for visit in visits:
        date += datetime.timedelta(days=visit.gap_days)
        dates.append(date)
    return dates, [_years(birth, date) for date in dates]


def _years(birth: datetime.date, date: datetime.date) -> int:
    return date.year - birth.year - ((date.month, date.day) < (birth.month, birth.day))


def _relations(visit: Visit, devices: Sequence[DevicePlan]) -> tuple[RelationPlan, ...]:
    lesions = [tracked.lesion for tracked in visit.lesions]
    since = {tracked.lesion.key: tracked.since for tracked in visit.lesions}
    return relate(lesions, since) + relate_tubes(devices, lesions)


def _gone(items: Sequence[Sequence[LesionPlan | DevicePlan]], order: int) -> tuple[Gone, ...]:
    """What the study before had and this one has not."""
    if order == 0:
        return ()
    left = {item.key for item in items[order]}
    return tuple(Gone(key=item.key, name=item.name) for item in items[order - 1] if item.key not in left)

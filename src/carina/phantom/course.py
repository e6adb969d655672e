"""Plans of phantom patients: their bodies, the dates of their studies, and the lesions of each study.

A plan depends only on the seed, the patient's index and the options, so any worker can make any part of
a set. Geometry, pixels and reports are made from the plan in other modules.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from carina.phantom.cooccurrence import relate_lesions
from carina.phantom.device_planning import plan_devices, relate_chest_tubes
from carina.phantom.evolution import (
    HEALING_DAYS,
    RECOVERY_DAYS,
    SAME_HEALTH,
    Outcome,
    TrackedLesion,
    apply_outcome,
    compute_all_abnormal_probability,
    decide_certainty,
    sample_new_lesions,
    sample_outcome,
    weigh_first_findings,
    weigh_new_findings,
)
from carina.phantom.options import Mix, PhantomOptions
from carina.phantom.plan import DevicePlan, LesionPlan, PatientPlan, RelationPlan, ResolvedItem, StudyPlan
from carina.phantom.sampling import sample_key, sample_persistent, sample_truncated_normal, sample_uniform
from carina.phantom.technique import Setting, plan_settings, plan_techniques
from carina.store.seeding import rng
from carina.studies.vocabulary import Sex

STUDIES_WITH_PRIOR = {2: 0.5, 3: 0.38, 4: 0.12}
"""Weights of the number of studies of a patient with more than one; half of them have more than two."""

FIRST_DAY = datetime.date(2101, 1, 1)
"""Dates of the next century cannot be mistaken for real ones."""
FIRST_DAYS = 79 * 365
INPATIENT_GAP = (1, 9)
FOLLOW_UP_GAP = (15, 120)
OUTPATIENT_GAP = (40, 1100)

YOUNGEST, OLDEST = 18, 86
"""Limits of the age at the first study; the longest courses end before the age of 96."""
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
"""Mean age of patients by their first lesion."""
AGE_SPREAD = 15.0

FEMALE = 0.48
HEIGHT_CM: dict[Sex, tuple[float, float]] = {"F": (163.0, 6.5), "M": (176.5, 7.0)}
HEIGHT_LIMITS = (145.0, 200.0)
BMI, BMI_SPREAD, BMI_LIMITS = 26.5, 4.6, (17.0, 42.0)
BMI_PER_CM = -0.03
RATIO_LIMITS, RATIO_SPREAD = (0.42, 0.48), 0.012
RATIO_PER_BMI = 0.0015
"""With a higher diaphragm, the heart is more horizontal."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """The lesions of one study, and the days since the prior study."""

    gap_days: int
    lesions: tuple[TrackedLesion, ...]


def format_patient_id(index: int) -> str:
    return f"p{index:06d}"


def count_studies(seed: int, index: int, options: PhantomOptions) -> int:
    """Number of studies of a patient, without planning them."""
    r = rng(seed, format_patient_id(index), "count")
    return sample_key(r, STUDIES_WITH_PRIOR) if r.random() < options.mix.with_prior else 1


def count_studies_by_patient(seed: int, n: int, options: PhantomOptions) -> Iterator[tuple[int, int]]:
    """Yield (index of patient, number of their studies in a set of `n`), without planning the studies."""
    index, remaining = 0, n
    while remaining > 0:
        count = min(count_studies(seed, index, options), remaining)
        yield index, count
        index, remaining = index + 1, remaining - count


def plan_studies(
    seed: int, n: int, options: PhantomOptions, *, start: int = 0
) -> Iterator[tuple[PatientPlan, StudyPlan]]:
    """Plan studies `start` to `n` of a set: patients in the order of their index, studies in the order of time.

    Only patients with a study in that range are planned. The first studies of a larger set are the same.
    """
    at = 0
    for index, count in count_studies_by_patient(seed, n, options):
        if at + count > start:
            patient = plan_patient(seed, index, options)
            for study in patient.studies[max(0, start - at) : count]:
                yield patient, study
        at += count


def plan_patient(seed: int, index: int, options: PhantomOptions) -> PatientPlan:
    """Plan one patient, from their body to the trend of each lesion in each study."""
    key, mix = format_patient_id(index), options.mix
    count = count_studies(seed, index, options)
    technique = rng(seed, key, "technique")
    settings = plan_settings(technique, count, mix)
    techniques = [plan_techniques(technique, setting.views, mix) for setting in settings]
    visits = _plan_visits(rng(seed, key, "course"), settings, mix)
    body = rng(seed, key, "body")
    sex: Sex = "F" if body.random() < FEMALE else "M"
    height, bmi, ratio = _plan_body(body, sex)
    # After the body, which must not depend on the findings.
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
                relations=_relate_all(visits[order], devices[order]),
                resolved_lesions=_list_missing(lesions, order),
                removed_devices=_list_missing(devices, order),
                ecg_leads=settings[order].ecg_leads,
            )
            for order in range(count)
        ),
    )


def _plan_body(r: np.random.Generator, sex: Sex) -> tuple[float, float, float]:
    """Sample height, BMI and cardiothoracic ratio, independent of the findings: habitus must not reveal them."""
    mean, sd = HEIGHT_CM[sex]
    height = sample_truncated_normal(r, mean=mean, sd=sd, within=HEIGHT_LIMITS)
    # Right-skewed, and a little lower in tall patients.
    bmi = BMI + BMI_PER_CM * (height - mean) + BMI_SPREAD * (float(r.standard_gamma(6.0)) - 6.0) / 6.0**0.5
    bmi = min(max(bmi, BMI_LIMITS[0]), BMI_LIMITS[1])
    middle = sum(RATIO_LIMITS) / 2.0 + RATIO_PER_BMI * (bmi - BMI)
    ratio = sample_truncated_normal(r, mean=middle, sd=RATIO_SPREAD, within=RATIO_LIMITS)
    return round(height, 1), round(bmi, 1), round(ratio, 4)


def _plan_visits(r: np.random.Generator, settings: Sequence[Setting], mix: Mix) -> list[Visit]:
    """Sample the lesions of each study. Which studies are normal is sampled first, so that their share is met."""
    count = len(settings)
    normal = [u < mix.normal for u in sample_persistent(r, count, keep=SAME_HEALTH)]
    visits: list[Visit] = []
    lesion_count = 0
    for order in range(count):
        before = visits[-1].lesions if visits else ()
        weights = {}
        if not normal[order]:
            weights = weigh_first_findings(
                mix.findings,
                has_normal_follow_up=any(normal[order:]),
                all_abnormal_probability=compute_all_abnormal_probability(mix.normal, count - 1 - order),
            )
        gap = 0 if order == 0 else _sample_gap_days(r, settings[order - 1], settings[order])
        gap, kept = _carry_over(r, before, gap, weights)
        fresh = []
        if weights:
            fresh = sample_new_lesions(
                r,
                [tracked.lesion for tracked in kept],
                weights,
                prior=[tracked.lesion for tracked in before],
                allow_old_fracture=order == 0 or gap >= HEALING_DAYS,
            )
        for lesion in fresh:
            lesion_count += 1
            keyed = replace(lesion, key=f"l{lesion_count}", trend=None if order == 0 else "new")
            kept.append(TrackedLesion(lesion=keyed, first_order=order, doubt=r.random()))
        visits.append(Visit(gap_days=gap, lesions=tuple(_update_certainty(tracked, mix) for tracked in kept)))
    return visits


def _carry_over(
    r: np.random.Generator, before: Sequence[TrackedLesion], gap: int, weights: dict[str, float]
) -> tuple[int, list[TrackedLesion]]:
    """The days since the prior study, at least `gap`, and those of its lesions that have not resolved.

    `weights` are the weights of a new finding, empty for a normal study.
    """
    outcomes: list[Outcome] = [
        sample_outcome(r, tracked.lesion, gap) if weights else "resolved" for tracked in before
    ]
    prior = [tracked.lesion for tracked in before]
    if weights and prior and set(outcomes) == {"resolved"} and not weigh_new_findings(weights, prior):
        # The study is abnormal but no finding could be new, so the main finding must not resolve.
        outcomes[0] = sample_outcome(r, prior[0], gap, allow_resolved=False)
    # Recovery takes time: a study after a resolved lesion is not earlier than the recovery.
    for tracked, outcome in zip(before, outcomes, strict=True):
        if outcome == "resolved":
            gap = max(gap, RECOVERY_DAYS[tracked.lesion.name] + int(sample_uniform(r, 0.0, 5.0)))
    kept = [
        replace(tracked, lesion=apply_outcome(r, tracked.lesion, outcome, gap))
        for tracked, outcome in zip(before, outcomes, strict=True)
        if outcome != "resolved"
    ]
    return gap, kept


def _sample_gap_days(r: np.random.Generator, before: Setting, after: Setting) -> int:
    if before.is_portable and after.is_portable:
        low, high = INPATIENT_GAP
    elif before.is_portable:
        low, high = FOLLOW_UP_GAP
    else:
        low, high = OUTPATIENT_GAP
    # Uniform in the logarithm: most gaps are near the short end.
    return int(low * (high / low) ** r.random())


def _update_certainty(tracked: TrackedLesion, mix: Mix) -> TrackedLesion:
    if tracked.lesion.trend == "unchanged":
        # An unchanged lesion keeps its certainty, also a fracture that has begun to heal.
        return tracked
    certainty = decide_certainty(tracked.lesion, tracked.doubt, mix.hedged)
    if certainty == tracked.lesion.certainty:
        return tracked
    return replace(tracked, lesion=replace(tracked.lesion, certainty=certainty))


def _plan_calendar(r: np.random.Generator, visits: Sequence[Visit]) -> tuple[list[datetime.date], list[int]]:
    """Sample the date of each study, and compute the patient's age at each."""
    first = next((tracked.lesion.name for visit in visits for tracked in visit.lesions), None)
    mean = AGE_OF_HEALTHY if first is None else AGE_OF[first]
    age = sample_truncated_normal(r, mean=mean, sd=AGE_SPREAD, within=(YOUNGEST, OLDEST))
    date = FIRST_DAY + datetime.timedelta(days=int(sample_uniform(r, 0.0, FIRST_DAYS)))
    birth = date - datetime.timedelta(days=int(age * 365.25) + 1)
    dates = []
    for visit in visits:
        date += datetime.timedelta(days=visit.gap_days)
        dates.append(date)
    return dates, [_count_years(birth, date) for date in dates]


def _count_years(birth: datetime.date, date: datetime.date) -> int:
    return date.year - birth.year - ((date.month, date.day) < (birth.month, birth.day))


def _relate_all(visit: Visit, devices: Sequence[DevicePlan]) -> tuple[RelationPlan, ...]:
    lesions = [tracked.lesion for tracked in visit.lesions]
    first_orders = {tracked.lesion.key: tracked.first_order for tracked in visit.lesions}
    return relate_lesions(lesions, first_orders) + relate_chest_tubes(devices, lesions)


def _list_missing(items: Sequence[Sequence[LesionPlan | DevicePlan]], order: int) -> tuple[ResolvedItem, ...]:
    """Items of the prior study that this study does not have."""
    if order == 0:
        return ()
    remaining = {item.key for item in items[order]}
    return tuple(
        ResolvedItem(key=item.key, name=item.name) for item in items[order - 1] if item.key not in remaining
    )

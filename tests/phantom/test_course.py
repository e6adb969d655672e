"""The plan of a phantom set: shares as asked for, courses that hold together, no answer given away."""

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, pairwise

import msgspec
import pytest

from carina.phantom.course import FORMS, count_studies, count_studies_by_patient, plan_patient, plan_studies
from carina.phantom.device_planning import PACEMAKER_AGE, compute_conditional_share
from carina.phantom.evolution import CHANGE, CHRONIC, RECOVERY_DAYS, weigh_first_findings
from carina.phantom.options import Mix, PhantomOptions
from carina.phantom.placement import AIRSPACE, IN_LUNG
from carina.phantom.plan import DevicePlan, LesionPlan, PatientPlan, StudyPlan
from carina.phantom.sampling import Kumaraswamy
from carina.store.errors import CarinaError
from carina.studies.vocabulary import DEVICES, FINDINGS

SEED = 20
OPTIONS = PhantomOptions()
PATIENTS = 2000
Z = 3.3
"""Two-sided 99.9% limits."""
CLUSTERED = 1.8
"""Studies of one patient are alike: their shares vary more than those of independent studies."""


@pytest.fixture(scope="module")
def patients() -> list[PatientPlan]:
    return [plan_patient(SEED, index, OPTIONS) for index in range(PATIENTS)]


@pytest.fixture(scope="module")
def studies(patients: list[PatientPlan]) -> list[StudyPlan]:
    return [study for patient in patients for study in patient.studies]


def planned(n: int = 600, **mix: object) -> list[StudyPlan]:
    options = PhantomOptions(mix=Mix(**mix))  # type: ignore[arg-type]
    return [study for _, study in plan_studies(SEED, n, options)]


def near(count: int, n: int, share: float, *, clustered: float = 1.0) -> bool:
    """Whether a count is within the binomial limits of its share."""
    return abs(count - n * share) <= Z * math.sqrt(clustered * n * share * (1.0 - share))


def things(study: StudyPlan) -> list[LesionPlan | DevicePlan]:
    return [*study.lesions, *study.devices]


def has(study: StudyPlan, name: str) -> bool:
    return any(item.name == name for item in things(study))


def share(studies: Iterable[StudyPlan], holds: Callable[[StudyPlan], bool]) -> float:
    answers = [holds(study) for study in studies]
    return sum(answers) / len(answers)


def portable(study: StudyPlan) -> bool:
    return study.techniques[0].view == "AP"


def follow_ups(patients: Iterable[PatientPlan]) -> Iterable[tuple[StudyPlan, StudyPlan]]:
    for patient in patients:
        yield from pairwise(patient.studies)


class TestSequence:
    def test_first_studies_of_a_larger_set_are_the_same(self) -> None:
        small = list(plan_studies(3, 41, OPTIONS))
        assert len(small) == 41
        assert list(plan_studies(3, 130, OPTIONS))[:41] == small

    def test_any_part_can_be_planned_alone(self) -> None:
        whole = list(plan_studies(3, 60, OPTIONS))
        for start in (0, 1, 17, 59, 60):
            assert list(plan_studies(3, 60, OPTIONS, start=start)) == whole[start:]

    def test_patients_in_order_and_studies_in_time(self) -> None:
        pairs = list(plan_studies(3, 200, OPTIONS))
        places = [(patient.index, study.order) for patient, study in pairs]
        assert places == sorted(places)
        assert all(a.date < b.date for a, b in follow_ups(patient for patient, _ in pairs))
        assert pairs[0][0].id == "p000000"
        assert all(study.id == f"{patient.id}-s{study.order + 1}" for patient, study in pairs)

    def test_counting_agrees_with_planning(self, patients: list[PatientPlan]) -> None:
        assert [count_studies(SEED, patient.index, OPTIONS) for patient in patients[:200]] == [
            len(patient.studies) for patient in patients[:200]
        ]

    def test_spans_cover_the_set(self) -> None:
        spans = list(count_studies_by_patient(3, 77, OPTIONS))
        assert sum(taken for _, taken in spans) == 77
        assert Counter(index for index, taken in spans for _ in range(taken)) == Counter(
            patient.index for patient, _ in plan_studies(3, 77, OPTIONS)
        )

    def test_empty_set(self) -> None:
        assert list(plan_studies(3, 0, OPTIONS)) == []

    def test_seeds_and_patients_differ(self) -> None:
        plans = [plan_patient(seed, index, OPTIONS) for seed in range(3) for index in range(3)]
        assert len({(plan.height_cm, plan.bmi, plan.studies[0].date) for plan in plans}) == 9

    def test_same_plan_in_another_process(self) -> None:
        code = (
            "from carina.phantom.course import plan_patient\n"
            "from carina.phantom.options import PhantomOptions\n"
            "print([plan_patient(5, i, PhantomOptions()) for i in range(60)])"
        )
        # Sets iterate in another order under another hash seed; no choice may hang on that.
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": "77"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str([plan_patient(5, index, OPTIONS) for index in range(60)])


class TestShares:
    def test_enough_studies_to_tell(self, studies: list[StudyPlan]) -> None:
        assert len(studies) > 4000

    def test_normal(self, studies: list[StudyPlan]) -> None:
        normal = sum(not study.lesions for study in studies)
        assert near(normal, len(studies), OPTIONS.mix.normal, clustered=CLUSTERED)

    def test_normal_at_every_order(self, patients: list[PatientPlan]) -> None:
        for order in range(4):
            here = [patient.studies[order] for patient in patients if len(patient.studies) > order]
            assert near(sum(not study.lesions for study in here), len(here), OPTIONS.mix.normal)

    def test_projections(self, studies: list[StudyPlan]) -> None:
        views = Counter("+".join(technique.view for technique in study.techniques) for study in studies)
        expected = {"PA+lateral": 0.45, "PA": 0.15, "AP": 0.40}
        assert set(views) == set(expected)
        for name, wanted in expected.items():
            assert near(views[name], len(studies), wanted, clustered=CLUSTERED)

    def test_number_of_studies(self, patients: list[PatientPlan]) -> None:
        counts = Counter(len(patient.studies) for patient in patients)
        assert set(counts) == {1, 2, 3, 4}
        several = PATIENTS - counts[1]
        assert near(several, PATIENTS, 0.65)
        assert near(counts[3] + counts[4], several, 0.5)

    def test_supine_and_leads_only_at_the_bedside(self, studies: list[StudyPlan]) -> None:
        bedside = [study for study in studies if portable(study)]
        assert near(sum(study.supine for study in bedside), len(bedside), 0.6)
        upright = [study for study in studies if not portable(study)]
        assert not any(study.supine or study.ecg_leads for study in upright)
        assert 0.2 < share(bedside, lambda study: study.ecg_leads) < 0.5

    def test_first_findings_follow_their_weights(self, patients: list[PatientPlan]) -> None:
        first = [patient.studies[0].lesions[0].name for patient in patients if patient.studies[0].lesions]
        total = sum(OPTIONS.mix.findings.values())
        for name, weight in OPTIONS.mix.findings.items():
            assert near(first.count(name), len(first), weight / total), name

    def test_one_to_three_findings(self, studies: list[StudyPlan]) -> None:
        numbers = Counter(len(study.lesions) for study in studies if study.lesions)
        assert set(numbers) == {1, 2, 3}
        assert numbers[1] > numbers[2] > numbers[3]

    def test_hedged(self, studies: list[StudyPlan]) -> None:
        lesions = [lesion for study in studies for lesion in study.lesions]
        hedged = sum(lesion.certainty == "uncertain" for lesion in lesions)
        assert near(hedged, len(lesions), OPTIONS.mix.hedged, clustered=CLUSTERED)

    def test_quality_defects(self, studies: list[StudyPlan]) -> None:
        techniques = [technique for study in studies for technique in study.techniques]
        assert near(
            sum(technique.has_defect for technique in techniques), len(techniques), OPTIONS.mix.quality_defect
        )

    @pytest.mark.parametrize("name", ["endotracheal tube", "nasogastric tube", "central venous line"])
    def test_bedside_devices(self, studies: list[StudyPlan], name: str) -> None:
        bedside = [study for study in studies if portable(study)]
        seen = sum(has(study, name) for study in bedside)
        assert near(seen, len(bedside), OPTIONS.mix.devices[name], clustered=CLUSTERED)

    def test_malpositioned_tips(self, studies: list[StudyPlan]) -> None:
        tips = [device for study in studies for device in study.devices if device.name != "pacemaker"]
        out_of_place = sum(not device.adequate for device in tips)
        assert near(out_of_place, len(tips), OPTIONS.mix.malpositioned, clustered=CLUSTERED)

    def test_many_mild_and_subtle_to_obvious(self, studies: list[StudyPlan]) -> None:
        lesions = [lesion for study in studies for lesion in study.lesions]
        mild = sum(lesion.extent < 0.4 for lesion in lesions) / len(lesions)
        severe = sum(lesion.extent > 0.75 for lesion in lesions) / len(lesions)
        assert 0.45 < mild < 0.7
        assert 0.05 < severe < 0.2
        assert min(lesion.density for lesion in lesions) < 0.35
        assert max(lesion.density for lesion in lesions) > 0.95


class TestRecords:
    def test_lesions_are_valid(self, studies: list[StudyPlan]) -> None:
        assert set(FORMS) == set(FINDINGS)
        seen: dict[str, set[str]] = {name: set() for name in FINDINGS}
        for lesion in (lesion for study in studies for lesion in study.lesions):
            seen[lesion.name].add(lesion.form)
            assert lesion.form in FORMS[lesion.name]
            assert 0.05 <= lesion.extent <= 1.0
            assert 0.3 <= lesion.density <= 1.0
            assert lesion.certainty in ("present", "uncertain")
            assert lesion.side in allowed_sides(lesion.name)
            assert lesion.level in allowed_levels(lesion)
        assert {name: tuple(sorted(forms)) for name, forms in seen.items()} == {
            name: tuple(sorted(forms)) for name, forms in FORMS.items()
        }

    def test_devices_are_valid(self, studies: list[StudyPlan]) -> None:
        for study in studies:
            assert len({(device.name, device.side) for device in study.devices}) == len(study.devices)
            for device in study.devices:
                assert device.name in DEVICES
                assert 0.0 <= device.depth <= 1.0
                assert (device.side == "midline") == (device.name in DEVICES[:2])
                if device.name in ("endotracheal tube", "nasogastric tube", "chest tube"):
                    assert portable(study)

    def test_keys_name_one_thing_in_a_patient(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            fixed: dict[str, tuple[object, ...]] = {}
            for study in patient.studies:
                items = things(study)
                assert len({item.key for item in items}) == len(items)
                for item in items:
                    level = item.level if isinstance(item, LesionPlan) else None
                    same = fixed.setdefault(item.key, (item.name, item.side, level))
                    assert same == (item.name, item.side, level)

    def test_places_do_not_overlap(self, studies: list[StudyPlan]) -> None:
        for study in studies:
            for one, other in combinations(study.lesions, 2):
                apart = {one.side, other.side} == {"right", "left"}
                if one.name == other.name:
                    assert apart
                if one.name in IN_LUNG and other.name in IN_LUNG:
                    assert apart or one.level != other.level
                    assert apart or AIRSPACE.isdisjoint((one.name, other.name))
                if {one.name, other.name} == {"pneumothorax", "atelectasis"}:
                    assert apart or "wedge" not in (one.form, other.form)

    def test_techniques(self, studies: list[StudyPlan]) -> None:
        for technique in (technique for study in studies for technique in study.techniques):
            turned, exposure = abs(technique.rotation_degrees), abs(technique.exposure)
            assert turned < 2.0 or 4.0 < turned <= 12.0
            assert exposure < 0.4 or 0.8 < exposure < 2.0
            low, high = (0.45, 0.8) if technique.view == "AP" else (0.55, 1.0)
            assert low <= technique.inspiration <= high or technique.inspiration < 0.35
            if technique.view == "lateral":
                assert technique.cut_off is None
                assert technique.inspiration >= 0.55

    def test_patients(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            assert patient.sex in ("F", "M")
            assert 145.0 <= patient.height_cm <= 200.0
            assert 17.0 <= patient.bmi <= 42.0
            assert 0.42 <= patient.cardiothoracic_ratio <= 0.48
        heights = {
            sex: [patient.height_cm for patient in patients if patient.sex == sex] for sex in ("F", "M")
        }
        assert sum(heights["M"]) / len(heights["M"]) - sum(heights["F"]) / len(heights["F"]) > 10.0

    def test_calendar(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            assert all(2101 <= study.date.year <= 2190 for study in patient.studies)
            assert all(18 <= study.age <= 95 for study in patient.studies)
            for before, after in pairwise(patient.studies):
                years = (after.date - before.date).days / 365.25
                assert years - 1.0 < after.age - before.age < years + 1.0

    def test_bedside_series_are_days_apart_and_clinics_months(self, patients: list[PatientPlan]) -> None:
        def median_gap(*, bedside: bool) -> int:
            gaps = sorted(
                (after.date - before.date).days
                for before, after in follow_ups(patients)
                if portable(before) == portable(after) == bedside
            )
            return gaps[len(gaps) // 2]

        assert median_gap(bedside=True) < 10
        assert median_gap(bedside=False) > 60


def allowed_sides(name: str) -> tuple[str, ...]:
    fixed = {"cardiomegaly": ("midline",), "edema": ("bilateral",)}
    either = ("right", "left", "bilateral")
    both = dict.fromkeys(
        ("atelectasis", "consolidation", "lung opacity", "pleural effusion", "pneumonia"), either
    )
    return (fixed | both).get(name, ("right", "left"))


def allowed_levels(lesion: LesionPlan) -> tuple[str | None, ...]:
    if lesion.name in ("cardiomegaly", "edema", "pneumothorax"):
        return (None,)
    if lesion.name == "pleural effusion" or lesion.form == "wedge":
        return ("lower",)
    return ("lower", "mid") if lesion.name == "atelectasis" else ("lower", "mid", "upper")


class TestCourse:
    def test_no_trend_without_a_prior(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            first = patient.studies[0]
            assert all(item.trend is None for item in things(first))
            assert first.resolved_lesions == first.removed_devices == ()

    def test_lesion_trends_follow_from_the_extents(self, patients: list[PatientPlan]) -> None:
        seen: Counter[str | None] = Counter()
        for before, after in follow_ups(patients):
            prior = {lesion.key: lesion for lesion in before.lesions}
            for lesion in after.lesions:
                assert lesion.trend == expected_trend(prior.get(lesion.key), lesion)
                seen[lesion.trend] += 1
            gone = prior.keys() - {lesion.key for lesion in after.lesions}
            assert {(item.key, item.name) for item in after.resolved_lesions} == {
                (key, prior[key].name) for key in gone
            }
        assert min(seen[trend] for trend in ("new", "worse", "improved", "unchanged")) > 100

    @pytest.mark.parametrize(
        "mix",
        [
            Mix(),
            Mix(normal=0.0, with_prior=1.0),
            Mix(findings={"edema": 1.0}, normal=0.2),
            Mix(findings={"edema": 1.0, "cardiomegaly": 1.0}, normal=0.1),
            Mix(findings={"pleural effusion": 1.0}, normal=0.0),
            Mix(findings={"consolidation": 1.0, "pneumothorax": 1.0}, normal=0.0),
        ],
    )
    def test_what_the_prior_had_on_that_side_is_not_new(self, mix: Mix) -> None:
        options = PhantomOptions(mix=mix)
        cohort = [plan_patient(41, index, options) for index in range(500)]
        fresh = 0
        for before, after in follow_ups(cohort):
            had = {(lesion.name, half) for lesion in before.lesions for half in halves(lesion.side)}
            for lesion in after.lesions:
                if lesion.trend == "new":
                    fresh += 1
                    assert had.isdisjoint((lesion.name, half) for half in halves(lesion.side))
        assert fresh > 20
        studies = [study for patient in cohort for study in patient.studies]
        normal = sum(not study.lesions for study in studies)
        assert near(normal, len(studies), mix.normal, clustered=CLUSTERED)

    def test_the_only_finding_there_can_be_goes_on(self) -> None:
        options = PhantomOptions(mix=Mix(findings={"edema": 1.0}, normal=0.0, with_prior=1.0))
        trends: Counter[str | None] = Counter()
        for index in range(200):
            studies = plan_patient(41, index, options).studies
            assert len({lesion.key for study in studies for lesion in study.lesions}) == 1
            trends.update(lesion.trend for study in studies[1:] for lesion in study.lesions)
        assert trends.keys() == {"worse", "improved", "unchanged"}
        assert min(trends.values()) > 0.1 * trends.total()

    def test_unchanged_is_unchanged_in_all(self, patients: list[PatientPlan]) -> None:
        seen = 0
        for before, after in follow_ups(patients):
            prior = {lesion.key: lesion for lesion in before.lesions}
            for lesion in after.lesions:
                if lesion.trend != "unchanged":
                    continue
                was = prior[lesion.key]
                form = lesion.form if (was.form, lesion.form) == ("acute", "healing") else was.form
                assert lesion == replace(was, form=form, trend="unchanged")
                seen += 1
        assert seen > 500

    def test_device_trends_follow_from_the_tips(self, patients: list[PatientPlan]) -> None:
        for before, after in follow_ups(patients):
            prior = {device.key: device for device in before.devices}
            for device in after.devices:
                assert device.trend == expected_device_trend(prior.get(device.key), device)
            gone = prior.keys() - {device.key for device in after.devices}
            assert {(item.key, item.name) for item in after.removed_devices} == {
                (key, prior[key].name) for key in gone
            }

    def test_a_resolved_lesion_does_not_come_back(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            gone: set[str] = set()
            for study in patient.studies:
                assert gone.isdisjoint(item.key for item in things(study))
                gone |= {item.key for item in (*study.resolved_lesions, *study.removed_devices)}

    def test_recovery_takes_its_time_and_chronic_findings_stay(self, patients: list[PatientPlan]) -> None:
        for before, after in follow_ups(patients):
            days = (after.date - before.date).days
            for item in after.resolved_lesions:
                assert item.name not in CHRONIC
                assert days >= RECOVERY_DAYS[item.name]

    def test_fractures_heal_and_never_turn_fresh(self, patients: list[PatientPlan]) -> None:
        healed = 0
        for before, after in follow_ups(patients):
            forms = {lesion.key: lesion.form for lesion in before.lesions if lesion.name == "fracture"}
            for lesion in after.lesions:
                if lesion.key in forms:
                    assert lesion.trend == "unchanged"
                    assert (forms[lesion.key], lesion.form) != ("healing", "acute")
                    healed += (forms[lesion.key], lesion.form) == ("acute", "healing")
        assert healed > 5

    def test_a_large_heart_is_mostly_unchanged(self, patients: list[PatientPlan]) -> None:
        trends = Counter(
            lesion.trend
            for _, after in follow_ups(patients)
            for lesion in after.lesions
            if lesion.name == "cardiomegaly" and lesion.trend != "new"
        )
        assert trends["unchanged"] > 0.7 * trends.total()

    def test_hedged_lesions_may_become_certain_or_stay(self, patients: list[PatientPlan]) -> None:
        seen: Counter[tuple[str, str]] = Counter()
        for before, after in follow_ups(patients):
            prior = {lesion.key: lesion for lesion in before.lesions}
            for lesion in after.lesions:
                if lesion.key in prior:
                    seen[prior[lesion.key].certainty, lesion.certainty] += 1
                    if lesion.trend == "worse":
                        assert (prior[lesion.key].certainty, lesion.certainty) != ("present", "uncertain")
        assert seen["uncertain", "present"] > 5
        assert seen["uncertain", "uncertain"] > 20

    def test_the_subtle_is_hedged_more(self, studies: list[StudyPlan]) -> None:
        lesions = [lesion for study in studies for lesion in study.lesions]
        subtle = [lesion for lesion in lesions if lesion.extent < 0.25 and lesion.density < 0.6]
        plain = [lesion for lesion in lesions if lesion.extent > 0.5 and lesion.density > 0.7]
        rates = [
            sum(lesion.certainty == "uncertain" for lesion in group) / len(group) for group in (subtle, plain)
        ]
        assert rates[0] > 4 * rates[1]
        for lesion in lesions:
            if lesion.certainty == "uncertain":
                assert lesion.name != "cardiomegaly" or lesion.extent <= 0.35
                assert lesion.form != "acute" or lesion.density <= 0.6

    @pytest.mark.parametrize("hedged", [0.13, 0.6, 1.0])
    def test_what_anyone_would_see_is_not_hedged(self, hedged: float) -> None:
        lesions = [lesion for study in planned(3000, hedged=hedged) for lesion in study.lesions]
        plain = [
            lesion
            for lesion in lesions
            if (lesion.density > 0.8 and lesion.extent > 0.35)
            or (lesion.extent > 0.5 and lesion.name not in ("nodule", "fracture"))
        ]
        assert {lesion.name for lesion in plain} == set(FINDINGS)
        assert all(lesion.certainty == "present" for lesion in plain)


def halves(side: str) -> tuple[str, ...]:
    return (side,) if side in ("right", "left") else ("right", "left")


def expected_trend(prior: LesionPlan | None, lesion: LesionPlan) -> str:
    if prior is None:
        return "new"
    change = lesion.extent - prior.extent
    if change == 0.0:
        assert lesion.density == prior.density
        return "unchanged"
    assert abs(change) >= CHANGE
    return "worse" if change > 0.0 else "improved"


def expected_device_trend(prior: DevicePlan | None, device: DevicePlan) -> str:
    if prior is None:
        return "new"
    if prior.adequate == device.adequate:
        assert prior.depth == device.depth
        return "unchanged"
    return "improved" if device.adequate else "worse"


class TestTogether:
    @pytest.mark.parametrize(
        ("given", "then", "at_least"),
        [
            ("edema", "cardiomegaly", 2.5),
            ("edema", "pleural effusion", 1.8),
            ("pleural effusion", "atelectasis", 1.8),
            ("pneumonia", "pleural effusion", 1.2),
            ("fracture", "pneumothorax", 2.5),
            ("endotracheal tube", "nasogastric tube", 3.0),
            ("endotracheal tube", "central venous line", 3.0),
            ("chest tube", "pneumothorax", 4.0),
        ],
    )
    def test_lift(self, studies: list[StudyPlan], given: str, then: str, at_least: float) -> None:
        with_it = share((study for study in studies if has(study, given)), lambda study: has(study, then))
        overall = share(studies, lambda study: has(study, then))
        assert with_it / overall > at_least

    def test_findings_that_look_alike_are_seldom_together(self, studies: list[StudyPlan]) -> None:
        found = [{lesion.name for lesion in study.lesions} & AIRSPACE for study in studies]
        several = sum(len(names) > 1 for names in found)
        assert 0 < several < 0.1 * sum(bool(names) for names in found)

    def test_air_and_fluid_together_are_rare(self, studies: list[StudyPlan]) -> None:
        with_air = [study for study in studies if has(study, "pneumothorax")]
        assert 0.0 < share(with_air, lambda study: has(study, "pleural effusion")) < 0.2

    def test_chest_tube_drains_something_on_its_side_or_just_did(self, patients: list[PatientPlan]) -> None:
        for patient in patients:
            for study in patient.studies:
                recent = [*study.lesions, *(patient.studies[study.order - 1].lesions if study.order else ())]
                for tube in (device for device in study.devices if device.name == "chest tube"):
                    assert any(
                        lesion.name in ("pneumothorax", "pleural effusion")
                        and lesion.side in (tube.side, "bilateral")
                        for lesion in recent
                    )

    def test_pacemaker_in_the_elderly_for_life(self, patients: list[PatientPlan]) -> None:
        old = [patient for patient in patients if patient.studies[0].age >= PACEMAKER_AGE]
        paced = [patient for patient in patients if has(patient.studies[-1], "pacemaker")]
        assert all(patient in old for patient in paced)
        assert near(len(paced), len(old), OPTIONS.mix.devices["pacemaker"])
        assert not any(
            item.name == "pacemaker"
            for patient in patients
            for study in patient.studies
            for item in study.removed_devices
        )

    def test_relations_are_between_things_of_the_study(self, studies: list[StudyPlan]) -> None:
        kinds: Counter[tuple[str, str, str]] = Counter()
        for study in studies:
            names = {item.key: item.name for item in things(study)}
            caused = [relation.object for relation in study.relations if relation.kind == "causes"]
            assert len(caused) == len(set(caused))
            for relation in study.relations:
                assert relation.subject != relation.object
                kinds[names[relation.subject], relation.kind, names[relation.object]] += 1
        for expected in (
            ("pleural effusion", "causes", "atelectasis"),
            ("fracture", "causes", "pneumothorax"),
            ("cardiomegaly", "accompanies", "edema"),
            ("consolidation", "suggests", "pneumonia"),
            ("pneumonia", "causes", "pleural effusion"),
            ("chest tube", "accompanies", "pneumothorax"),
        ):
            assert kinds[expected] > 5, expected

    def test_a_cause_is_on_the_side_of_its_effect_and_not_older_than_it(
        self, patients: list[PatientPlan]
    ) -> None:
        for patient in patients:
            since: dict[str, int] = {}
            for study in patient.studies:
                lesions = {lesion.key: lesion for lesion in study.lesions}
                for key in lesions:
                    since.setdefault(key, study.order)
                for relation in study.relations:
                    if relation.kind != "causes":
                        continue
                    cause, effect = lesions[relation.subject], lesions[relation.object]
                    assert since[cause.key] <= since[effect.key]
                    assert {cause.side, effect.side} != {"right", "left"}
                    assert cause.form != "healing"


def chi_square(pairs: Iterable[tuple[bool, bool]]) -> float:
    """Of a 2 by 2 table, by the product formula."""
    table = Counter(pairs)
    a, b, c, d = (table[row, column] for row in (True, False) for column in (True, False))
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    return (a + b + c + d) * (a * d - b * c) ** 2 / margins


class TestNothingGivesTheAnswerAway:
    LIMIT = Z**2 * CLUSTERED

    def test_defects(self, studies: list[StudyPlan]) -> None:
        defects = [study.techniques[0].has_defect for study in studies]
        findings = [bool(study.lesions) for study in studies]
        assert chi_square(zip(defects, findings, strict=True)) < self.LIMIT

    @pytest.mark.parametrize("name", FINDINGS)
    def test_defects_and_each_finding(self, studies: list[StudyPlan], name: str) -> None:
        pairs = [(study.techniques[0].has_defect, has(study, name)) for study in studies]
        assert chi_square(pairs) < self.LIMIT

    def test_projection_posture_and_leads(self, studies: list[StudyPlan]) -> None:
        bedside = [study for study in studies if portable(study)]
        assert chi_square((portable(study), bool(study.lesions)) for study in studies) < self.LIMIT
        assert chi_square((study.supine, bool(study.lesions)) for study in bedside) < self.LIMIT
        assert chi_square((study.ecg_leads, bool(study.lesions)) for study in bedside) < self.LIMIT

    @pytest.mark.parametrize("name", ["endotracheal tube", "nasogastric tube", "central venous line"])
    def test_bedside_devices(self, studies: list[StudyPlan], name: str) -> None:
        bedside = [study for study in studies if portable(study)]
        assert chi_square((has(study, name), bool(study.lesions)) for study in bedside) < self.LIMIT

    def test_the_body_does_not_depend_on_the_findings(self) -> None:
        healthy = PhantomOptions(mix=Mix(normal=1.0))
        for index in range(50):
            one, other = plan_patient(SEED, index, OPTIONS), plan_patient(SEED, index, healthy)
            assert (one.sex, one.height_cm, one.bmi) == (other.sex, other.height_cm, other.bmi)
            assert [study.techniques for study in one.studies] == [
                study.techniques for study in other.studies
            ]


class TestCustomMix:
    def test_all_normal(self) -> None:
        assert not any(study.lesions or study.relations for study in planned(normal=1.0))

    def test_none_normal(self) -> None:
        assert all(study.lesions for study in planned(normal=0.0))

    @pytest.mark.parametrize("name", FINDINGS)
    def test_one_finding_alone(self, name: str) -> None:
        studies = planned(findings={name: 1.0})
        assert {lesion.name for study in studies for lesion in study.lesions} == {name}
        normal = sum(not study.lesions for study in studies)
        assert near(normal, len(studies), OPTIONS.mix.normal, clustered=CLUSTERED)

    @pytest.mark.parametrize("name", ["pleural effusion", "cardiomegaly", "atelectasis", "pneumothorax"])
    def test_weight_0_never_occurs(self, name: str) -> None:
        studies = planned(findings={**Mix().findings, name: 0.0})
        assert not any(has(study, name) for study in studies)

    def test_no_priors(self) -> None:
        studies = planned(with_prior=0.0)
        assert {study.order for study in studies} == {0}

    def test_priors_always(self) -> None:
        options = PhantomOptions(mix=Mix(with_prior=1.0))
        assert all(count_studies(SEED, index, options) > 1 for index in range(300))

    def test_projection(self) -> None:
        assert all(portable(study) for study in planned(pa_with_lateral=0.0, pa_alone=0.0))
        assert not any(portable(study) for study in planned(pa_with_lateral=0.7, pa_alone=0.3))

    def test_no_defects_and_only_defects(self) -> None:
        for wanted in (0.0, 1.0):
            studies = planned(quality_defect=wanted)
            assert {technique.has_defect for study in studies for technique in study.techniques} == {
                bool(wanted)
            }

    def test_hedged(self) -> None:
        assert all(lesion.certainty == "present" for study in planned(hedged=0.0) for lesion in study.lesions)
        lesions = [lesion for study in planned(2000, hedged=0.5) for lesion in study.lesions]
        hedged = sum(lesion.certainty == "uncertain" for lesion in lesions) / len(lesions)
        assert 0.42 < hedged < 0.52

    def test_no_more_is_hedged_than_can_be_in_doubt(self) -> None:
        lesions = [lesion for study in planned(2000, hedged=1.0) for lesion in study.lesions]
        hedged = [lesion for lesion in lesions if lesion.certainty == "uncertain"]
        assert 0.54 < len(hedged) / len(lesions) < 0.64
        small = [lesion for lesion in lesions if lesion.extent <= 0.35 and lesion.name != "fracture"]
        assert all(lesion.certainty == "uncertain" for lesion in small)

    def test_devices(self) -> None:
        assert not any(study.devices for study in planned(devices={}))
        always = planned(devices=dict.fromkeys(DEVICES, 1.0), malpositioned=0.0)
        tips = [device for study in always for device in study.devices]
        assert all(device.adequate for device in tips)
        assert all(has(study, "endotracheal tube") for study in always if portable(study))

    @pytest.mark.parametrize(
        ("fields", "named"),
        [
            ({"normal": 1.2}, "normal"),
            ({"normal": float("nan")}, "normal"),
            ({"with_prior": -0.1}, "with_prior"),
            ({"hedged": 13}, "hedged"),
            ({"quality_defect": 2.0}, "quality_defect"),
            ({"malpositioned": -1.0}, "malpositioned"),
            ({"pa_with_lateral": 0.8, "pa_alone": 0.4}, "pa_with_lateral and pa_alone"),
            ({"findings": {"pneumonitis": 1.0}}, "findings has 'pneumonitis'"),
            ({"findings": {"mass": -1.0}}, r"findings\['mass'\]"),
            ({"findings": {"mass": float("inf")}}, r"findings\['mass'\]"),
            ({"findings": {"mass": 0.0}}, "findings needs"),
            ({"devices": {"stent": 0.5}}, "devices has 'stent'"),
            ({"devices": {"chest tube": 1.5}}, r"devices\['chest tube'\]"),
        ],
    )
    def test_mistakes_are_named(self, fields: dict[str, object], named: str) -> None:
        with pytest.raises(CarinaError, match=named):
            Mix(**fields)  # type: ignore[arg-type]

    @pytest.mark.parametrize("fields", [{"size": 4}, {"size": 99999}, {"bits": 16}, {"wording": "loud"}])
    def test_mistakes_in_other_options_are_named(self, fields: dict[str, object]) -> None:
        with pytest.raises(CarinaError, match=f"^{next(iter(fields))} must be"):
            PhantomOptions(**fields)  # type: ignore[arg-type]

    def test_options_are_checked_when_decoded(self) -> None:
        with pytest.raises(CarinaError, match=r"normal"):
            msgspec.convert({"mix": {"normal": 3.0}}, PhantomOptions)


class TestLaws:
    def test_rank_undoes_quantile(self) -> None:
        spread = Kumaraswamy(low=0.3, high=1.0, a=1.4, b=1.3)
        for rank in (0.0, 0.1, 0.5, 0.99, 1.0):
            assert spread.rank(spread.quantile(rank)) == pytest.approx(rank)

    def test_chances_with_and_without_a_leader_give_the_share(self) -> None:
        for companion, leader in [(0.26, 0.22), (0.05, 0.5), (0.95, 0.3), (0.0, 0.2), (1.0, 0.4)]:
            given = compute_conditional_share(companion, leader, leader=True)
            otherwise = compute_conditional_share(companion, leader, leader=False)
            assert 0.0 <= otherwise <= 1.0
            assert leader * given + (1.0 - leader) * otherwise == pytest.approx(companion)

    def test_weights_before_and_without_a_normal_study_average_to_the_weights(self) -> None:
        weights = {"nodule": 0.3, "edema": 0.6, "pneumonia": 0.1, "mass": 0.0}
        closing = weigh_first_findings(weights, has_normal_follow_up=True, all_abnormal_probability=0.8)
        opened = weigh_first_findings(weights, has_normal_follow_up=False, all_abnormal_probability=0.8)
        assert closing.keys() == {"edema", "pneumonia"}
        for name in ("nodule", "edema", "pneumonia"):
            mean = 0.8 * opened[name] + 0.2 * closing.get(name, 0.0) / sum(closing.values())
            assert mean == pytest.approx(weights[name])

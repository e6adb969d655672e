"""The truth of phantom studies: attributes follow geometry, courses are consistent, reports agree with the truth."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from carina.phantom import Mix, PhantomOptions, make_studies
from carina.studies import certainty_of
from carina.studies.vocabulary import COSTOPHRENIC_ANGLES, FINDINGS, LUNG_PARTS, SECTIONS, ZONES

SIDES = {"right": {"right"}, "left": {"left"}, "bilateral": {"right", "left"}}
LEVELS = ("upper", "mid", "lower")


def lesions(phantoms):
    """Every finding except cardiomegaly, with its frontal mask and the anatomy of that image."""
    for one in phantoms:
        image, _, anatomy = one.views[0]
        for lesion, finding in one.lesions_with_findings:
            masks = [a.region.to_mask() for a in finding.annotations if a.image == image.key]
            if lesion.name != "cardiomegaly" and masks:
                yield one, finding, masks[0], anatomy


# ---- findings ----


def test_every_planned_lesion_and_no_other_is_a_finding(phantoms):
    for one in phantoms:
        stated = [(f.name, f.certainty, f.trend) for f in one.study.findings if f.certainty != "absent"]
        assert stated == [(p.name, p.certainty, p.trend) for p in one.plan.lesions], str(one)


def test_every_finding_of_the_vocabulary_is_present_uncertain_or_absent(phantoms):
    for one in phantoms:
        names = {finding.name for finding in one.study.findings}
        assert names <= set(FINDINGS), str(one)
        assert all(certainty_of(one.study, name) is not None for name in FINDINGS), str(one)
        unrecorded = set(FINDINGS) - names
        assert all(certainty_of(one.study, name) != "absent" for name in unrecorded), str(one)
        absent = [f for f in one.study.findings if f.certainty == "absent"]
        assert len({f.name for f in absent}) == len(absent)
        for finding in absent:
            assert not finding.annotations
            assert not finding.measures
            assert finding.location is None
            assert finding.severity is None


def test_every_present_or_uncertain_finding_has_a_mask_on_the_frontal_image(phantoms):
    for one in phantoms:
        for _, finding in one.lesions_with_findings:
            areas = {a.image: a.region.area for a in finding.annotations}
            assert areas.get(one.frontal.key, 0) > 0, f"{one} {finding.name}"


def test_annotations_are_complete(phantoms):
    for one in phantoms:
        for _, finding in one.lesions_with_findings:
            assert finding.location is not None
            for annotation in finding.annotations:
                image = one.study.image(annotation.image)
                assert (annotation.region.height, annotation.region.width) == (image.height, image.width)
                assert (annotation.drawn, annotation.annotator) == ("mask", "phantom")
                assert annotation.conspicuity is not None
                assert annotation.conspicuity >= 0
                if finding.name != "cardiomegaly":
                    assert 0 < annotation.threshold < 1


def test_ids_are_unique_and_relations_hold_between_them(phantoms):
    related = 0
    for one in phantoms:
        study = one.study
        ids = [
            thing.id for thing in (*study.findings, *study.devices, *study.relations, *study.recommendations)
        ]
        assert len(ids) == len(set(ids))
        there = {t.id for t in (*study.findings, *study.devices) if t.certainty != "absent"}
        for relation in study.relations:
            assert {relation.subject, relation.object} <= there
            assert relation.subject != relation.object
            related += 1
        for advice in study.recommendations:
            assert set(advice.about) <= set(ids)
    assert related >= 5


# ---- location ----


def divide_into_zones(lung):
    """Thirds of the height of one lung, by the rows of its pixels' centres."""
    rows = np.flatnonzero(lung.any(axis=1))
    top, height = rows[0], rows[-1] + 1 - rows[0]
    third = [math.floor(3 * (row - top + 0.5) / height) for row in range(lung.shape[0])]
    return {level: lung & (np.array(third) == k)[:, None] for k, level in enumerate(LEVELS)}


def test_the_stored_side_is_where_the_mask_lies(phantoms):
    count = 0
    for one, finding, mask, anatomy in lesions(phantoms):
        right, missing = ((mask & anatomy[f"{side} lung"]).sum() for side in ("right", "left"))
        assert right + missing > 0, f"{one} {finding.name}"
        share = right / (right + missing)
        sides = {"right": share > 0.85, "left": share < 0.15, "bilateral": 0.15 <= share <= 0.85}
        assert sides[finding.location.side], f"{one} {finding.name}: {share:.2f} in the right lung"
        # The same from the spine alone: the patient's right is the image's left.
        middle = np.nonzero(anatomy["spine"])[1].mean()
        if finding.location.side != "bilateral":
            assert (np.nonzero(mask)[1].mean() < middle) == (finding.location.side == "right")
        count += 1
    assert count > 40


def test_the_stored_zones_are_those_that_the_mask_covers(phantoms):
    for one, finding, mask, anatomy in lesions(phantoms):
        if one.plan.techniques[0].cut_off:
            continue  # zones are those of the whole lung, which is only partly visible
        zones = {
            f"{side} {level} zone": zone
            for side in ("right", "left")
            for level, zone in divide_into_zones(anatomy[f"{side} lung"]).items()
        }
        total = sum(int((mask & zone).sum()) for zone in zones.values())
        expected = set()
        for side in SIDES[finding.location.side]:
            shares = {
                name: ((mask & zone).sum() / zone.sum(), (mask & zone).sum() / total)
                for name, zone in zones.items()
                if name.startswith(side)
            }
            passed = {
                name for name, (of_zone, of_lesion) in shares.items() if of_zone >= 0.2 or of_lesion >= 0.25
            }
            fullest = max(of_lesion for _, of_lesion in shares.values())
            expected |= passed or {
                name for name, (_, of_lesion) in shares.items() if of_lesion == fullest > 0
            }
        assert set(finding.location.zones) == expected, f"{one} {finding.name}"
        assert finding.location.zones == tuple(zone for zone in ZONES if zone in expected)


def test_every_stored_zone_and_part_holds_some_of_the_mask(phantoms):
    for one, finding, mask, anatomy in lesions(phantoms):
        assert finding.location.zones
        for name in (*finding.location.zones, *finding.location.parts):
            assert name in (*ZONES, *LUNG_PARTS, *COSTOPHRENIC_ANGLES)
            covered = (mask & anatomy[name]).sum()
            assert covered > 0, f"{one} {finding.name} {name}"
            assert name.split()[0] in SIDES[finding.location.side], f"{one} {finding.name} {name}"
        assert {zone.split()[0] for zone in finding.location.zones} == SIDES[finding.location.side], str(one)


def test_both_sides_of_a_bilateral_finding_have_zones_though_a_large_heart_hides_most_of_one(chest):
    one = chest.make_phantom(
        chest.lesion("cardiomegaly", "midline", key="l2", form="global", extent=0.8),
        chest.lesion("edema", "bilateral", form="interstitial", extent=0.05),
        view="AP",
        inspiration=0.5,
        rotation_degrees=11.0,
        patient={"sex": "F", "height_cm": 160.0, "bmi": 40.0},
        size=128,
    )
    location = one.study.findings[1].location
    assert {zone.split()[0] for zone in location.zones} == SIDES[location.side]


# ---- severity and measures ----


def test_severity_follows_the_stored_measure(phantoms, chest):
    decisive = {
        "cardiomegaly": "cardiothoracic ratio",
        "pleural effusion": "extent",
        "atelectasis": "volume lost",
        "consolidation": "extent",
        "pneumonia": "extent",
        "lung opacity": "extent",
        "edema": "edema grade",
        "pneumothorax": "extent",
    }
    rows: dict[str, list[tuple[float, int]]] = {}
    for one in phantoms:
        for _, finding in one.lesions_with_findings:
            if finding.name in ("fracture", "mass", "nodule"):
                assert finding.severity is None
                continue
            (value,) = (m.value for m in finding.measures if m.name == decisive[finding.name])
            rows.setdefault(finding.name, []).append(
                (value, ["mild", "moderate", "severe"].index(finding.severity))
            )
    for name, pairs in rows.items():
        ranks = [rank for _, rank in sorted(pairs)]
        assert ranks == sorted(ranks), name
    for extent, word in ((0.2, "mild"), (0.35, "moderate"), (0.7, "severe")):
        one = chest.make_phantom(
            chest.lesion("cardiomegaly", "midline", form="global", extent=extent), size=64
        )
        (ratio,) = (m.value for m in one.study.findings[0].measures if m.name == "cardiothoracic ratio")
        assert word == ("mild" if ratio < 0.55 else "moderate" if ratio < 0.60 else "severe")
        assert one.study.findings[0].severity == word


def test_shares_of_lung_are_those_of_the_masks(phantoms):
    for one, finding, mask, anatomy in lesions(phantoms):
        for measure in finding.measures:
            if measure.name in ("share of lung", "share of hemithorax"):
                lungs = sum(anatomy[f"{side} lung"].astype(int) for side in SIDES[finding.location.side]) > 0
                assert measure.value == pytest.approx((mask & lungs).sum() / lungs.sum(), abs=0.001), str(one)


def test_distribution_counts_the_pieces_of_the_mask(chest):
    nodule = chest.make_phantom(chest.lesion("nodule", level="upper", form="solid")).study.findings[0]
    edema = chest.make_phantom(chest.lesion("edema", "bilateral", form="interstitial")).study.findings[0]
    effusion = chest.make_phantom(
        chest.lesion("pleural effusion", level="lower", form="free")
    ).study.findings[0]
    assert (nodule.distribution, edema.distribution, effusion.distribution) == ("focal", "diffuse", None)


# ---- quality ----


def test_quality_words_follow_the_technique(phantoms):
    seen = set()
    for one in phantoms:
        for image, technique, _ in one.views:
            quality = image.quality
            turn = technique.rotation_degrees
            expected = "none" if abs(turn) < 4 else "left" if turn > 0 else "right"
            assert quality.rotation == expected
            assert quality.rotation_degrees == pytest.approx(abs(turn), abs=0.051)
            assert quality.inspiration == ("poor" if technique.inspiration < 0.35 else "adequate")
            exposure = technique.exposure
            assert quality.exposure == (
                "over" if exposure > 0.8 else "under" if exposure < -0.8 else "adequate"
            )
            assert quality.cut_off == (
                (f"{technique.cut_off} costophrenic angle",) if technique.cut_off else ()
            )
            seen |= {quality.rotation, quality.inspiration, quality.exposure, bool(quality.cut_off)}
    assert seen == {"none", "left", "right", "poor", "adequate", "over", "under", True, False}


@pytest.mark.parametrize("turn", [-10.0, 10.0])
def test_the_clavicles_of_a_rotated_patient_move_to_the_side_of_rotation(chest, turn):
    """Rotation to the left moves the front of the chest to the patient's left, which is the image's right."""
    straight, turned = chest.make_phantom(rotation_degrees=0.0), chest.make_phantom(rotation_degrees=turn)

    def middle_between_clavicles(one):
        masks = one.views[0][2]
        right = np.flatnonzero(masks["right clavicle"].any(axis=0))[-1]
        missing = np.flatnonzero(masks["left clavicle"].any(axis=0))[0]
        return (right + missing) / 2 - np.nonzero(masks["spine"])[1].mean()

    moved = middle_between_clavicles(turned) - middle_between_clavicles(straight)
    assert turned.frontal.quality.rotation == ("left" if turn > 0 else "right")
    assert (moved > 3) if turn > 0 else (moved < -3)


# ---- time ----


def test_studies_of_a_patient_are_linked_in_order_of_time(courses):
    assert any(len(course) >= 3 for course in courses)
    for course in courses:
        assert [one.study.order for one in course] == list(range(len(course)))
        for earlier, later in pairwise(course):
            assert later.study.prior == earlier.study.id
            assert earlier.study.later == later.study.id
            assert later.study.date > earlier.study.date
            assert later.study.age >= earlier.study.age
        assert course[0].study.prior is None
        assert {one.study.sex for one in course} == {course[0].study.sex}
        assert {one.study.split for one in course} == {course[0].study.split}


def test_trends_agree_with_the_prior_study(courses):
    seen = set()
    for course in courses:
        assert all(f.trend is None for f in course[0].study.findings)
        for earlier, later in pairwise(course):
            before = {plan.key: (plan, finding) for plan, finding in earlier.lesions_with_findings}
            for plan, finding in later.lesions_with_findings:
                seen.add(finding.trend)
                if plan.key not in before:
                    assert finding.trend == "new", str(later)
                    continue
                prior_plan, prior = before.pop(plan.key)
                assert prior.name == finding.name
                change = plan.extent - prior_plan.extent
                assert finding.trend == ("worse" if change > 0 else "improved" if change < 0 else "unchanged")
                for measure in finding.measures:
                    if measure.name in ("diameter", "cardiothoracic ratio", "volume lost"):
                        (was,) = (m.value for m in prior.measures if m.name == measure.name)
                        assert np.sign(measure.value - was) == np.sign(change), f"{later} {finding.name}"
            missing = {finding.name for _, finding in before.values()}
            there = {finding.name for _, finding in later.lesions_with_findings}
            resolved = {f.name for f in later.study.findings if f.trend == "resolved"}
            assert resolved == missing - there, str(later)
            assert all(f.certainty == "absent" for f in later.study.findings if f.trend == "resolved")
            seen |= {"resolved"} if resolved else set()
    assert seen == {"new", "worse", "improved", "unchanged", "resolved"}


def test_a_worse_lesion_has_a_larger_mask(courses):
    """A worse nodule or mass has a larger mask in millimetres, when both studies have the same view."""
    for course in courses:
        for earlier, later in pairwise(course):
            if earlier.frontal.view != later.frontal.view:
                continue
            before = {plan.key: finding for plan, finding in earlier.lesions_with_findings}
            for plan, finding in later.lesions_with_findings:
                if finding.name not in ("nodule", "mass") or finding.trend not in ("worse", "improved"):
                    continue
                areas = [
                    f.annotations[0].region.area * math.prod(one.frontal.spacing_mm)
                    for f, one in ((before[plan.key], earlier), (finding, later))
                ]
                assert (areas[1] > areas[0]) == (finding.trend == "worse"), str(later)


# ---- reports ----


def list_statements(one):
    return [
        (k, sentence, s) for k, sentence in enumerate(one.study.report.sentences) for s in sentence.states
    ]


def test_sentences_are_spans_of_their_sections(phantoms):
    for one in phantoms:
        report = one.study.report
        names = [section.name for section in report.sections]
        assert names == [name for name in SECTIONS if name in names]
        for section in report.sections:
            rest = section.text
            for sentence in report.sentences:
                if sentence.section == section.name:
                    quote = report.quote(sentence)
                    assert quote == quote.strip() != ""
                    assert quote in rest
            spans = [(s.start, s.end) for s in report.sentences if s.section == section.name]
            assert spans == sorted(spans)
            assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_every_statement_agrees_with_the_stored_truth(phantoms):
    checked = 0
    for one in phantoms:
        study = one.study
        findings, devices = ({t.id: t for t in things} for things in (study.findings, study.devices))
        for _, sentence, s in list_statements(one):
            where = f"{one}: {study.report.quote(sentence)}"
            checked += 1
            if s.kind == "finding":
                finding = findings[s.about]
                assert s.certainty in (None, finding.certainty), where
                assert s.side in (None, finding.location and finding.location.side), where
                assert not s.zones or set(s.zones) <= set(finding.location.zones), where
                assert s.severity in (None, finding.severity), where
                assert s.trend in (None, finding.trend), where
                if s.measure:
                    (stored,) = (m for m in finding.measures if m.name == s.measure.name)
                    assert s.measure.unit == stored.unit, where
                    # As a reader rounds: to a whole millimetre, a twentieth of the lung, a hundredth.
                    rounding = 0.5 if stored.unit == "mm" else 0.03
                    assert s.measure.value == pytest.approx(stored.value, abs=rounding), where
            elif s.kind == "device":
                device = devices[s.about]
                assert s.certainty == device.certainty, where
                assert s.side in (None, device.side), where
                assert s.trend in (None, device.trend), where
                assert s.measure is None or s.measure in device.measures, where
            elif s.kind == "relation":
                assert s.about in {relation.id for relation in study.relations}, where
            elif s.kind == "recommendation":
                assert s.about in {advice.id for advice in study.recommendations}, where
            elif s.kind == "quality":
                quality = study.image(s.about).quality
                assert s.side in (None, quality.rotation, *(part.split()[0] for part in quality.cut_off)), (
                    where
                )
            else:
                assert s.about == study.prior, where
    assert checked > 500


def test_sides_in_the_words_are_those_of_the_linked_findings(phantoms):
    """In a sentence about findings alone, "left" means that a finding on the left is linked."""
    other_uses = re.compile(r"right (atri|ventric|main|heart)|left (atri|ventric|main|heart)", re.IGNORECASE)
    sided = 0
    for one in phantoms:
        findings = {f.id: f for f in one.study.findings}
        for sentence in one.study.report.sentences:
            text = other_uses.sub("", one.study.report.quote(sentence))
            linked = [findings[s.about] for s in sentence.states if s.kind == "finding"]
            there = [f for f in linked if f.certainty != "absent"]
            if not there or any(s.kind in ("device", "quality") for s in sentence.states):
                continue
            sides = set().union(*(SIDES.get(f.location.side, set()) for f in there))
            for word in ("right", "left"):
                if re.search(rf"\b{word}\b", text, re.IGNORECASE):
                    assert word in sides, f"{one}: {text}"
                    sided += 1
            if re.search(r"\b(bilateral|both)\b", text, re.IGNORECASE):
                assert sides == {"right", "left"}, f"{one}: {text}"
    assert sided > 30


def test_everything_present_or_resolved_points_to_the_sentences_that_state_it(phantoms):
    for one in phantoms:
        study = one.study
        stated: dict[str, set[int]] = {}
        for k, _, s in list_statements(one):
            stated.setdefault(s.about, set()).add(k)
        for thing in (*study.findings, *study.devices, *study.relations, *study.recommendations):
            assert set(thing.evidence) == stated.get(thing.id, set()), f"{one} {thing.id}"
        for thing in (*study.findings, *study.devices):
            if thing.certainty != "absent" or thing.trend == "resolved":
                assert thing.evidence, f"{one} {thing.name} is not in the report"


def test_uncertain_findings_are_uncertain_in_every_sentence(phantoms):
    hedged = 0
    for one in phantoms:
        uncertain = {f.id for f in one.study.findings if f.certainty == "uncertain"}
        hedged += len(uncertain)
        for _, sentence, s in list_statements(one):
            if s.about in uncertain:
                assert s.certainty in (None, "uncertain"), one.study.report.quote(sentence)
        for finding in one.study.findings:
            said = {s.certainty for _, _, s in list_statements(one) if s.about == finding.id} - {None}
            assert said <= {finding.certainty}, f"{one} {finding.name}"
            assert finding.id not in uncertain or said, f"{one} {finding.name} is nowhere hedged"
    assert hedged >= 5


def test_comparisons_are_made_only_with_a_prior(phantoms):
    for one in phantoms:
        kinds = {s.kind for _, _, s in list_statements(one)}
        assert ("comparison" in kinds) == (one.study.prior is not None), str(one)


# ---- shortcuts ----


def measure_border(pixels, *, share=0.08, bins=8):
    """Mean grey levels along the four edges."""
    depth = round(share * len(pixels))
    image = pixels.astype(float) / 255
    strips = (image[:depth], image[-depth:], image[:, :depth].T, image[:, -depth:].T)
    return np.concatenate(
        [[part.mean(), part.std()] for strip in strips for part in np.array_split(strip, bins, axis=1)],
        axis=0,
    )


def test_the_border_of_the_image_does_not_reveal_disease():
    """Without chest tubes, which depend on the findings, as in a clinic, and enter from the side."""
    devices = {name: share for name, share in Mix().devices.items() if name != "chest tube"}
    mix = Mix(normal=0.5, pa_with_lateral=0.0, pa_alone=0.6, devices=devices)
    features, diseased, patients = [], [], []
    for study, pixels in make_studies(160, 31, PhantomOptions(size=48, mix=mix)):
        features.append(measure_border(next(iter(pixels.values()))))
        diseased.append(any(f.certainty != "absent" for f in study.findings))
        patients.append(study.patient)
    # Grouped by patient, because studies of one patient are alike.
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=2000))
    guess = cross_val_predict(
        model, np.array(features), diseased, groups=patients, cv=GroupKFold(5), method="predict_proba"
    )[:, 1]
    # 95 % limits of an uninformed guess at this size: 0.5 -+ 0.09.
    assert 0.33 < roc_auc_score(diseased, guess) < 0.62


def test_unchanged_findings_keep_their_severity(courses):
    pairs = 0
    for before, after in (pair for course in courses for pair in pairwise(course)):
        for finding in after.study.findings:
            if finding.trend == "unchanged":
                earlier = [
                    f for f in before.study.findings if f.name == finding.name and f.certainty != "absent"
                ]
                assert finding.severity in {f.severity for f in earlier}
                pairs += 1
    assert pairs > 0

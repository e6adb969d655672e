"""How often to ask what: as many yes as no by name, wrong values as common as right ones, and nothing to divide by."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.studies import Assessed
from carina.trek.balance import NO_OPENING, KindContent, balance_wrong_values, fit_balance, matching_share
from carina.trek.stages.findings import ask_findings

quick = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
COMMON = dict(zip(NAMES, (0.3, 0.2, 0.15, 0.1, 0.1, 0.06, 0.04, 0.02), strict=True))


def seen(*there, noticed=None, settled=(), stratum=""):
    noticed = frozenset(there if noticed is None else noticed)
    return KindContent(tuple(sorted(there)), noticed, bool(noticed), frozenset(settled), stratum)


# ---- by name ---------------------------------------------------------------------------------------------------------


def population(made, number, *, seed=1, devices=False, most=3, bare=0.3):
    """Studies that have nothing, or up to so many of the names; the common ones more often."""
    chance = np.random.default_rng(seed)
    shares = np.array(list(COMMON.values()))
    studies = []
    for n in range(number):
        have = 0 if chance.random() < bare else int(chance.integers(1, most + 1))
        there = set(chance.choice(NAMES, have, replace=False, p=shares / shares.sum()))
        make = made.device if devices else made.finding
        views = ("AP",) if chance.random() < 0.3 + 0.15 * have else ("PA",)
        things = [make(name, "present" if name in there else "absent") for name in NAMES]
        studies.append(made.study(*things, name=f"s{n}", views=views))
    return studies


def asked(made, studies, *, seeds=1, quotas=None):
    """By study and seed: what was told of anything at all, and the named questions in order, by kind."""
    quotas = quotas or made.with_quotas(lists=0.0, others=0.0)
    among = made.survey(studies, choices=quotas.choices, uncertain=quotas.uncertain)
    for seed in range(seeds):
        for study in studies:
            draft = made.draft(study, among=among, seed=seed, quotas=quotas)
            ask_findings(draft)
            yield study, draft.turns


def told(turn):
    if turn.label is not None:
        return turn.label
    return next(
        (choice.text.lower() for choice in turn.choices if choice.right and choice.text in ("Yes", "No")),
        None,
    )


def named(turns, task):
    return [
        (turn.slots["finding"], told(turn)) for turn in turns if turn.task == task and "finding" in turn.slots
    ]


def near_half(yes, total, *, z=4.0):
    return abs(yes - total / 2) <= z * math.sqrt(total) / 2


@pytest.mark.parametrize("devices", [False, True])
def test_every_name_is_answered_yes_as_often_as_no(made, devices):
    counted = defaultdict(Counter)
    task = "device presence" if devices else "presence"
    for _, turns in asked(made, population(made, 1000, devices=devices), seeds=3):
        for name, label in named(turns, task):
            counted[name][label] += 1
    assert set(counted) == set(NAMES)
    total = Counter()
    for name, labels in counted.items():
        assert set(labels) == {"yes", "no"}
        # A fit, not an identity: within sampling error and a little more.
        n = labels.total()
        assert abs(labels["yes"] / n - 0.5) < 3.5 / (2 * math.sqrt(n)) + 0.05, (name, labels)
        total += labels
    assert total.total() > 2000
    assert abs(total["yes"] / total.total() - 0.5) < 0.03
    # The common ones are not all thrown away for it.
    assert counted["alpha"]["yes"] > 400


@pytest.mark.parametrize("devices", [False, True])
@pytest.mark.parametrize(("most", "bare"), [(3, 0.3), (1, 0.8), (5, 0.05)])
def test_whatever_was_answered_before_the_next_answer_is_as_likely_yes_as_no(made, devices, most, bare):
    task, opening = ("device presence", "any device") if devices else ("presence", "any abnormality")
    following = defaultdict(Counter)
    studies = population(made, 900, devices=devices, most=most, bare=bare, seed=most)
    for _, turns in asked(made, studies, seeds=4):
        history = tuple(told(turn) for turn in turns if turn.task == opening)
        for _, label in named(turns, task):
            following[history][label] += 1
            history = (*history, label)
    checked = 0
    for history, labels in following.items():
        n = labels.total()
        if n >= 40:
            assert abs(labels["yes"] / n - 0.5) < 4 / (2 * math.sqrt(n)) + 0.025, (history, labels)
            checked += n
    assert checked > 400


def test_answers_are_balanced_within_each_projection(made):
    counted = defaultdict(Counter)
    for study, turns in asked(made, population(made, 1200), seeds=2):
        for turn in turns:
            if turn.task == "any abnormality":
                counted[study.images[0].view, "any"][told(turn)] += 1
        first = named(turns, "presence")[:1]
        if first and not any(turn.task == "any abnormality" for turn in turns):
            counted[study.images[0].view, "first"][first[0][1]] += 1
    assert set(counted) == {(view, what) for view in ("PA", "AP") for what in ("any", "first")}
    for what, labels in counted.items():
        n = labels.total()
        assert n > 60
        assert abs(labels["yes"] / n - 0.5) < 4 / (2 * math.sqrt(n)) + 0.03, (what, labels)


def test_companions_of_present_findings_are_negatives_more_often():
    # Atelectasis goes with an effusion, so it is looked for there rather than beside a nodule.
    studies = Counter({seen("pleural effusion"): 100, seen("pneumothorax"): 100, seen(): 50})
    fitted = fit_balance(["pleural effusion", "pneumothorax"], studies, choices=0.0)
    assert all(weight > 0 for weight in fitted.negative.values())


def test_of_two_offered_names_each_is_right_equally_often():
    studies = Counter(
        {seen("alpha"): 60, seen("beta"): 20, seen("alpha", "gamma"): 30, seen("gamma"): 10, seen(): 9}
    )
    fitted = fit_balance(["alpha", "beta", "gamma"], studies, choices=0.25)

    def times(there, missing):
        return sum(
            n for study, n in studies.items() if there in study.askable and missing not in study.askable
        )

    pairs_ = [(one, other) for one in fitted.asked for other in fitted.asked if one != other]
    for one, other in pairs_:
        rate = fitted.pair_probability[one, other]
        assert 0 < rate <= 1
        assert times(one, other) * rate == pytest.approx(
            times(other, one) * fitted.pair_probability[other, one]
        )
    assert fitted.pair_probability["alpha", "beta"] == pytest.approx(20 / 90)
    assert fitted.frequency_among_several == {"alpha": 1.0, "beta": 0.0, "gamma": 1.0}


def test_names_that_may_be_confused_are_never_offered_together():
    studies = Counter({seen("consolidation"): 50, seen("pneumonia"): 50, seen("fracture"): 10, seen(): 20})
    fitted = fit_balance(["consolidation", "fracture", "pneumonia"], studies, choices=0.25)
    assert ("consolidation", "pneumonia") not in fitted.pair_probability
    assert ("pneumonia", "consolidation") not in fitted.pair_probability
    assert ("pneumonia", "fracture") in fitted.pair_probability


def test_a_finding_without_possible_negatives_is_not_asked_about_by_name():
    # Wherever the one is not, something is that could be called so.
    studies = Counter({seen("consolidation"): 50, seen("pneumonia"): 50})
    fitted = fit_balance(["consolidation", "pneumonia"], studies, choices=0.0)
    assert fitted.asked == {"consolidation": 0.0, "pneumonia": 0.0}


def test_resolved_findings_are_no_negatives():
    studies = Counter({seen("alpha"): 50, seen(settled=("alpha",)): 50})
    assert fit_balance(["alpha"], studies, choices=0.0).asked == {"alpha": 0.0}


@pytest.mark.parametrize(
    "studies",
    [
        {},
        {seen(): 5},
        {seen("alpha"): 5},
        {seen("alpha", "beta"): 5},
        {seen(noticed=("alpha",)): 5},
        {seen("alpha"): 1, seen(): 10_000},
        {seen("alpha"): 10_000, seen(): 1},
        {seen("consolidation", noticed=("consolidation", "pneumonia")): 3, seen(): 1},
    ],
)
@pytest.mark.parametrize("names", [[], ["alpha"], ["alpha", "beta", "consolidation"]])
def test_a_set_that_cannot_be_balanced_is_no_error(studies, names):
    fitted = fit_balance(names, Counter(studies), choices=0.25)
    assert list(fitted.asked) == list(fitted.negative) == list(fitted.frequency_among_several) == names
    for share in (
        *fitted.asked.values(),
        *fitted.frequency_among_several.values(),
        *fitted.pair_probability.values(),
    ):
        assert 0 <= share <= 1
    for weight in fitted.negative.values():
        assert weight >= 0
        assert math.isfinite(weight)
    assert set(fitted.opening) == {study.stratum for study in studies}
    for opening in fitted.opening.values():
        assert all(0 <= share <= 1 for share in opening.any_probability.values())
        for step in opening.negatives_first:
            assert 0 <= step.yes <= 1
            assert 0 <= step.continues <= 1


kinds = st.sets(st.sampled_from(NAMES[:4]), max_size=3)


@quick
@given(
    st.dictionaries(kinds.map(lambda names: seen(*names)), st.integers(1, 500), max_size=9), st.floats(0, 0.9)
)
def test_shares_stay_shares_whatever_the_set(studies, choices):
    fitted = fit_balance(NAMES[:4], Counter(studies), choices=choices)
    assert all(0 <= share <= 1 for share in fitted.asked.values())
    assert all(weight >= 0 and math.isfinite(weight) for weight in fitted.negative.values())
    having = sum(n for study, n in studies.items() if study.askable)
    lacking = sum(n for study, n in studies.items() if not study.askable)
    if studies:
        rates = fitted.opening[""].any_probability
        # As many studies with something as without are asked whether there is anything.
        assert rates[True] * having == pytest.approx(rates[False] * lacking)
        assert bool(rates[True]) == bool(having and lacking)


def test_negative_questions_of_studies_without_findings_never_outnumber_yes():
    fitted = fit_balance(
        ["alpha", "beta"], Counter({seen("alpha"): 10, seen("beta"): 10, seen(): 1000}), choices=0.0
    )
    opening = fitted.opening[""]
    having = 20 * (1 - opening.any_probability[True])
    lacking = 1000 * (1 - opening.any_probability[False])
    for step in opening.negatives_first:
        yes, no = having * step.yes, having * (1 - step.yes) + lacking * step.continues
        assert yes == pytest.approx(no, rel=0.35)  # fewer may begin than have something
        having, lacking = having * (1 - step.yes), lacking * step.continues


@pytest.mark.parametrize(
    ("rare", "common", "share"), [(0, 9, 0.0), (9, 0, 0.0), (3, 9, 1 / 3), (9, 3, 1.0), (0, 0, 0.0)]
)
def test_matching_share_is_the_ratio_of_rare_to_common_up_to_one(rare, common, share):
    assert matching_share(rare, common) == share


def test_a_stratum_outside_the_survey_asks_for_nothing():
    assert NO_OPENING.negatives_first == ()
    assert set(NO_OPENING.any_probability.values()) == {0.0}


# ---- wrong values ----------------------------------------------------------------------------------------------------


def pairs(wrong):
    """How often each right value meets each wrong one."""
    flows = {}
    for value, share in zip(wrong.values, wrong.shares, strict=True):
        weights = wrong.weights[value]
        for other, weight in zip(wrong.values, weights, strict=True):
            flows[value, other] = wrong.asked[value] * share * weight / sum(weights) if sum(weights) else 0.0
    return flows


def apart(values):
    return {value: frozenset({value}) for value in values}


values = st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 400), min_size=1, max_size=7)


@quick
@given(values)
def test_of_two_values_each_is_right_equally_often(common):
    wrong = balance_wrong_values(sorted(common.items()), apart(common))
    flows = pairs(wrong)
    for one, other in flows:
        assert flows[one, other] == pytest.approx(flows[other, one], abs=2e-3), (common, one, other)
        assert one != other or flows[one, other] == 0
    assert sum(wrong.shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in wrong.asked.values())


def test_of_three_as_common_values_all_are_asked_about():
    wrong = balance_wrong_values([("a", 5), ("b", 5), ("c", 5)], apart("abc"))
    assert list(wrong.asked.values()) == pytest.approx([1, 1, 1], abs=1e-3)
    assert wrong.shares == pytest.approx((1 / 3,) * 3)
    flows = pairs(wrong)
    assert {round(flows[pair], 4) for pair in flows if pair[0] != pair[1]} == {round(1 / 6, 4)}


def test_a_value_more_common_than_all_others_is_asked_about_as_often_as_they_are_common():
    wrong = balance_wrong_values([("a", 80), ("b", 15), ("c", 5)], apart("abc"))
    flows = pairs(wrong)
    said_wrongly = sum(flows[right, "a"] for right in "bc")
    assert wrong.asked["a"] == pytest.approx(20 / 80, abs=0.02)
    assert said_wrongly == pytest.approx(wrong.asked["a"] * 0.8, abs=1e-3)


def test_a_partly_right_value_is_never_offered_as_wrong():
    meaning = {
        "low": frozenset({"l"}),
        "both": frozenset({"l", "u"}),
        "up": frozenset({"u"}),
        "far": frozenset({"f"}),
    }
    wrong = balance_wrong_values([("low", 9), ("both", 9), ("up", 9), ("far", 9)], meaning)
    place = {value: number for number, value in enumerate(wrong.values)}
    assert wrong.weights["both"][place["low"]] == wrong.weights["both"][place["up"]] == 0
    assert wrong.weights["low"][place["both"]] == wrong.weights["low"][place["low"]] == 0
    assert wrong.weights["low"][place["up"]] > 0
    assert wrong.weights["both"][place["far"]] > 0


def test_where_no_value_is_wrong_nothing_is_asked():
    wrong = balance_wrong_values([("a", 3), ("b", 4)], {"a": frozenset("x"), "b": frozenset("x")})
    assert set(wrong.asked.values()) == {0.0}
    assert balance_wrong_values([("a", 3)], apart("a")).asked == {"a": 0.0}


def test_names_that_nobody_denies_do_not_keep_others_from_being_asked():
    def content(askable, *looked_for):
        return KindContent(
            (askable,), frozenset({askable}), True, frozenset(), looked_for=frozenset(looked_for)
        )

    # As reports are: scoliosis is stated and never denied, low lung volumes are denied once.
    seen = Counter(
        {
            content("pneumothorax", "fracture"): 8,
            content("fracture", "pneumothorax"): 8,
            content("scoliosis", "pneumothorax", "fracture"): 40,
            content("low lung volumes", "pneumothorax", "fracture"): 40,
            content("fracture", "pneumothorax", "low lung volumes"): 1,
        }
    )
    names = ("pneumothorax", "fracture", "scoliosis", "low lung volumes")
    balance = fit_balance(names, seen, choices=0.0)
    assert balance.asked["scoliosis"] == 0
    assert 0 < balance.asked["low lung volumes"] < 0.1
    assert min(balance.asked[name] for name in ("pneumothorax", "fracture")) > 0.9
    assert min(balance.negative[name] for name in ("pneumothorax", "fracture")) > 0.2


# ---- studies of which nothing is known to be absent ------------------------------------------------------------------


def labelled(made, number, *, normal):
    """As labels that text mining lists: what is not listed is unknown, unless the label is "No finding"."""
    studies = []
    for n in range(number):
        name = NAMES[n % 4]
        is_normal = n % 10 < normal
        things = [made.finding(other, "absent") for other in NAMES[:4]] if is_normal else [made.finding(name)]
        closed = Assessed(findings="listed", listed=NAMES[:4]) if is_normal else Assessed()
        studies.append(made.study(*things, name=f"s{n}", assessed=closed))
    return studies


@pytest.mark.parametrize("normal", [3, 5, 7])
def test_studies_that_deny_nothing_are_asked_once_and_balanced_by_those_that_deny_everything(made, normal):
    answers = defaultdict(Counter)
    questions = 0
    for study, turns in asked(
        made, labelled(made, 400, normal=normal), quotas=made.with_quotas(lists=0.0, others=0.0, choices=0.0)
    ):
        own = named(turns, "presence")
        is_normal = study.findings[0].certainty == "absent"
        assert len(own) <= (3 if is_normal else 1), own
        questions += len(own)
        for name, answer in own:
            answers[name][answer] += 1
    assert questions > 150
    for name, by in answers.items():
        assert near_half(by["yes"], by.total()), (name, by)
    total = sum(answers.values(), Counter())
    assert near_half(total["yes"], total.total(), z=3.0)


@pytest.mark.parametrize("most", [0.1, 0.3])
def test_uncertain_is_the_answer_to_a_share_of_the_questions_at_most(made, most):
    studies = population(made, 600)
    hedged = [
        made.study(made.finding(NAMES[n % 3], "uncertain"), made.finding(NAMES[3], "absent"), name=f"u{n}")
        for n in range(1500)
    ]
    quotas = made.with_quotas(lists=0.0, others=0.0, uncertain=most)
    labels = Counter(
        label
        for _, turns in asked(made, [*studies, *hedged], quotas=quotas)
        for _, label in named(turns, "presence")
    )
    share = labels["uncertain"] / labels.total()
    assert labels["yes"] > 300
    assert abs(share - most) < 0.07  # fitted to the expected number of the other questions
    assert near_half(labels["yes"], labels["yes"] + labels["no"])


def test_few_uncertain_ones_are_all_asked_about(made):
    studies = [*population(made, 300), made.study(made.finding("alpha", "uncertain"), name="u")]
    quotas = made.with_quotas(lists=0.0, others=0.0, uncertain=0.2)
    found = {study.id: turns for study, turns in asked(made, studies, quotas=quotas)}
    assert named(found["u"], "presence") == [("alpha", "uncertain")]


def test_nothing_is_asked_where_uncertain_would_always_be_right(made):
    studies = [made.study(made.finding("alpha", "uncertain"), name=f"u{n}") for n in range(20)]
    for _, turns in asked(made, studies, quotas=made.with_quotas(lists=0.0, others=0.0)):
        assert named(turns, "presence") == []

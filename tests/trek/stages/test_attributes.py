"""Stage 3 in words: every key against the record of the finding, every distractor wrong for it."""

import re
from collections import Counter, defaultdict

import pytest

from carina.studies import Location, Measure
from carina.studies.vocabulary import ZONES

CLOSED = ("location", "side", "severity", "appearance", "distribution")
SAID = {
    "location": "at",
    "side": "on_side",
    "severity": "grade",
    "appearance": "look",
    "distribution": "spread",
}


def record(study, about):
    return next(thing for thing in (*study.findings, *study.devices) if thing.id == about)


def place(words, thing):
    """Where it lies, in words; of a device its tip. What lies beside a lung is never throughout it."""
    if hasattr(thing, "location"):
        at = None if thing.location is None else words.at(thing.location)
        if at is not None and thing.name in ("pleural effusion", "pneumothorax") and "throughout" in at:
            return words.on_side(thing.location.side)
        return at
    return None if thing.site is None else words.at_site(thing.site)


def truth(words, thing, attribute):
    if attribute == "location":
        return place(words, thing)
    if attribute == "side":
        return words.on_side(thing.location.side)
    if attribute == "appearance":
        return ", ".join(thing.appearance)
    return getattr(thing, attribute)


def zones(study):
    held = defaultdict(list)
    for finding in study.findings:
        if finding.certainty != "absent" and finding.location is not None:
            for zone in finding.location.zones:
                held[zone].append(finding)
    return held


def touch(one, other):
    """Whether two zones are the same, or next to each other."""
    (side, level, _), (other_side, other_level, _) = one.split(), other.split()
    levels = ("upper", "mid", "lower")
    return side == other_side and abs(levels.index(level) - levels.index(other_level)) < 2


def apart(some, others):
    return not any(touch(one, other) for one in some for other in others)


def places_in_words(words):
    """Every set of zones, by how it is said."""
    said = {}
    for bits in range(1, 64):
        chosen = tuple(zone for number, zone in enumerate(ZONES) if bits >> number & 1)
        said[words.at(Location(zones=chosen))] = set(chosen)
    return said


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk.study, step) for talk in conversations for step in talk.case.steps if step.stage == 3]


def slot(step, name):
    return next((one.value for one in step.slots if one.name == name), None)


def value_facts(step, *names):
    return [fact for fact in step.facts if fact.name in names]


# ---- on phantoms -----------------------------------------------------------------------------------------------------


def test_every_family_is_asked_in_every_format(asked):
    expected = {(attribute, form) for attribute in CLOSED for form in ("open", "yes_no", "choice")}
    expected |= {("position", form) for form in ("open", "yes_no", "choice")}
    expected |= {
        ("description", "open"),
        ("statement", "choice"),
        ("vignette", "choice"),
        ("measure", "open"),
        ("region content", "open"),
        ("region content", "yes_no"),
        ("box content", "open"),
        ("region box", "boxes"),
        ("finding box", "boxes"),
    }
    assert {(step.task, step.format) for _, step in asked} >= expected
    assert any(step.template.startswith("s3.location.choice-multiple") for _, step in asked)


def test_facts_are_the_values_of_the_record(made, asked):
    checked = Counter()
    for study, step in asked:
        for fact in value_facts(step, *CLOSED, "position"):
            assert fact.text == truth(made.words, record(study, fact.about), fact.name), (study.id, step.id)
            checked[fact.name] += 1
        for fact in made.facts(step, "truth"):
            assert fact.text == record(study, fact.about).certainty
    assert set(checked) == {*CLOSED, "position"}


def test_an_open_answer_contains_the_value(asked):
    for study, step in asked:
        if step.format == "open" and step.task in CLOSED:
            (fact,) = value_facts(step, *CLOSED)
            if step.task == "appearance":
                assert (
                    all(look in step.key.text for look in record(study, fact.about).appearance)
                    or fact.text in step.key.text
                )
            else:
                assert fact.text.lower() in step.key.text.lower()


def test_a_question_with_a_wrong_value_is_answered_no_with_the_right_value(made, asked):
    labels = Counter()
    for study, step in asked:
        if step.format != "yes_no" or step.task not in CLOSED:
            continue
        (fact,) = value_facts(step, *CLOSED)
        thing = record(study, fact.about)
        right, said = truth(made.words, thing, step.task), slot(step, SAID[step.task])
        assert said in step.question
        assert step.key.label == ("yes" if said == right else "no"), (study.id, step.id)
        if not step.constraints.answer_only:
            assert right.lower() in step.key.text.lower()
            assert step.key.text.lower().startswith(step.key.label)
        labels[step.task, step.key.label] += 1
    assert set(labels) == {(task, label) for task in CLOSED for label in ("yes", "no")}


def test_a_wrong_place_shares_nothing_with_the_right_one(made, asked):
    """Zones that the finding lies in or next to, or a side of two that it lies on, are no wrong answer."""
    subsets = places_in_words(made.words)
    sides = {"on the right": {"right"}, "on the left": {"left"}, "on both sides": {"right", "left"}}
    checked = Counter()
    for study, step in asked:
        if (
            step.task not in ("location", "side")
            or not made.closed(step)
            or step.template.startswith("s3.location.choice-m")
        ):
            continue
        (fact,) = value_facts(step, step.task)
        meaning = subsets if step.task == "location" else sides
        if fact.text not in meaning:
            continue
        if step.format == "yes_no":
            said = [slot(step, SAID[step.task])] if step.key.label == "no" else []
        else:
            said = [text for text in made.wrong(step) if text in meaning]
        if step.task == "side" and step.format == "choice":
            continue  # "on both sides" is an alternative among options
        for text in said:
            if text in meaning:
                assert not meaning[text] & meaning[fact.text], (study.id, step.id, text, fact.text)
                if step.task == "location":
                    assert apart(meaning[text], meaning[fact.text]), (study.id, step.id, text, fact.text)
                checked[step.task] += 1
    assert set(checked) == {"location", "side"}


def test_a_choice_has_the_right_value_or_says_that_none_is(made, asked):
    none_said = made.words.wording.common["none_of_these"]
    counted = Counter()
    for study, step in asked:
        if step.format != "choice" or step.task not in CLOSED or step.multiple:
            continue
        (fact,) = value_facts(step, *CLOSED)
        right = truth(made.words, record(study, fact.about), step.task)
        (text,) = made.right(step)
        if text in none_said:
            assert right not in [option.text for option in step.options]
        else:
            assert text == right
        assert right not in made.wrong(step)
        assert len(step.options) >= 2
        counted[step.task, text in none_said] += 1
    assert {(task, False) for task in CLOSED} <= set(counted)
    assert any(none for _, none in counted)


def test_zones_among_options_are_those_of_the_finding(made, asked):
    several = Counter()
    for study, step in asked:
        if step.task != "location" or not step.multiple:
            continue
        (fact,) = value_facts(step, "location")
        held = set(record(study, fact.about).location.zones)
        assert {option.text for option in step.options} <= set(ZONES)
        assert set(made.right(step)) == {option.text for option in step.options} & held
        assert made.right(step)
        assert made.wrong(step)
        assert apart(made.wrong(step), held)
        assert step.score == "set"
        several[len(made.right(step))] += 1
    assert several[1] > 0
    assert several[2] > 0


def test_one_of_the_statements_is_right(made, asked):
    for study, step in asked:
        if step.task != "statement":
            continue
        (fact,) = value_facts(step, *CLOSED)
        right = truth(made.words, record(study, fact.about), fact.name)
        (text,) = made.right(step)
        assert right in text
        for other in made.wrong(step):
            # A shorter place may be part of a longer one's words, never a whole statement.
            assert not other.endswith((f" {right}", f'"{right}"'))


def test_a_vignette_has_five_descriptions_or_six_of_which_one_fits(made, asked):
    checked = 0
    sides = {
        made.words.on_side(side): {zone for zone in ZONES if side in ("bilateral", zone.split()[0])}
        for side in ("right", "left", "bilateral")
    }
    meaning = places_in_words(made.words) | sides

    def excludes(one, other):
        """By grade, or by place: less detail would be right, too."""
        grades = [re.search(r"\b(mild|moderate|severe)\b", text) for text in (one, other)]
        if None not in grades and grades[0].group() != grades[1].group():
            return True
        held = [max((at for at in meaning if at in text), key=len, default=None) for text in (one, other)]
        return None not in held and apart(meaning[held[0]], meaning[held[1]])

    for study, step in asked:
        if step.task != "vignette":
            continue
        about = {fact.about for fact in value_facts(step, *CLOSED)}
        (thing,) = (record(study, name) for name in about)
        at = place(made.words, thing)
        expected = made.words.describe(
            made.words.name(thing.name),
            severity=thing.severity,
            distribution=thing.distribution,
            at=at,
            appearance=thing.appearance,
        )
        assert made.right(step) == [expected]
        assert 5 <= len(step.options) <= 6
        for text in made.wrong(step):
            assert excludes(text, expected), (study.id, step.id, text, expected)
        assert study.indication in step.question
        checked += 1
    assert checked > 20


def test_the_position_of_a_device_is_that_of_the_record(made, asked):
    forms = Counter()
    for study, step in asked:
        if step.task != "position":
            continue
        (fact,) = value_facts(step, "position")
        adequate = record(study, fact.about).position == "adequate"
        if step.format == "yes_no":
            assert step.key.label == ("yes" if adequate else "no")
        elif step.format == "choice":
            assert made.right(step) == ["in an adequate position" if adequate else "malpositioned"]
        forms[step.format, adequate] += 1
    assert {("open", True), ("open", False)} <= set(forms)


def test_measures_are_those_of_the_record(made, asked):
    """Only what can be taken from a picture, of what is there, and no finer than anyone could take it."""
    checked = 0
    for study, step in asked:
        if step.task == "measure":
            (fact,) = made.facts(step, "measure")
            thing = record(study, fact.about)
            measure = next(m for m in thing.measures if m.name == fact.text)
            assert (measure.name, thing.certainty) == ("cardiothoracic ratio", "present")
            assert fact.value == measure.value
            assert re.findall(r"\d+\.\d+", step.key.text) == [f"{measure.value:.2f}"]
            checked += 1
    assert checked > 5


def test_a_description_has_all_attributes_and_hedges_uncertain_findings(made, asked):
    checked = Counter()
    for study, step in asked:
        if step.task != "description":
            continue
        about = {fact.about for fact in value_facts(step, *CLOSED, "position")}
        for thing in (record(study, name) for name in about):
            said = step.key.text
            for attribute in ("location", "severity", "distribution"):
                value = (
                    place(made.words, thing) if attribute == "location" else getattr(thing, attribute, None)
                )
                assert value is None or value in said
            if thing.certainty == "uncertain":
                assert made.hedges.search(said), said
            checked[thing.certainty] += 1
    assert set(checked) == {"present", "uncertain"}


def test_a_zone_holds_the_findings_that_lie_in_it(made, asked):
    checked = Counter()
    for study, step in asked:
        if step.task != "region content":
            continue
        (zone,) = made.targets(step)
        held = zones(study)
        assert {fact.about for fact in made.facts(step, "truth")} == {thing.id for thing in held[zone]}
        assert not [d for d in study.devices if d.certainty != "absent"]
        assert study.images[0].view in ("PA", "AP") or any(i.view in ("PA", "AP") for i in study.images)
        # What lies next to an affected zone may hold its fringe.
        assert held[zone] or apart({zone}, [other for other, things in held.items() if things])
        if step.format == "yes_no":
            assert step.key.label == ("yes" if held[zone] else "no")
            checked["yes_no", step.key.label] += 1
        else:
            for thing in held[zone]:
                name = made.words.name(thing.name).a.removeprefix("a ").removeprefix("an ")
                assert name in step.key.text.lower()
            checked["open", bool(held[zone])] += 1
    assert set(checked) == {("yes_no", "yes"), ("yes_no", "no"), ("open", True), ("open", False)}


# ---- what tells what -------------------------------------------------------------------------------------------------


def test_a_question_that_reveals_several_attributes_comes_after_those(made, conversations):
    """Descriptions, contents of regions and boxes never come before a closed question about the same finding."""
    for talk in conversations:
        told = set()
        for step in talk.case.steps:
            about = {
                fact.about
                for fact in step.facts
                if fact.about.startswith(("f", "d")) and fact.name != "target"
            }
            if step.stage == 3 and made.closed(step) and step.task != "region content":
                assert not about & told, (talk.case.id, step.id)
            if step.task in (
                "description",
                "box content",
                "region content",
                "finding box",
            ) and not made.closed(step):
                told |= about


def test_the_place_of_a_device_is_asked_before_the_judgement_that_names_it(made, conversations):
    for talk in conversations:
        judged = set()
        for step in talk.case.steps:
            if step.task == "position":
                judged |= {fact.about for fact in made.facts(step, "position")}
            elif made.closed(step):
                assert not judged & {fact.about for fact in made.facts(step, "location")}, (
                    talk.case.id,
                    step.id,
                )


def test_no_attribute_is_asked_twice(conversations):
    for talk in conversations:
        counted = Counter(
            (fact.about, fact.name)
            for step in talk.case.steps
            if step.task in (*CLOSED, "position", "statement")
            for fact in value_facts(step, *CLOSED, "position")
        )
        assert set(counted.values()) <= {1}


def test_no_closed_question_asks_for_a_known_place(made, conversations):
    """A sited "yes", or a zone that was asked about, tells places."""
    for talk in conversations:
        told, all_told, zones_told = set(), False, set()
        for step in talk.case.steps:
            places = {fact.about for fact in value_facts(step, "location", "side")}
            if step.stage == 3 and made.closed(step):
                assert not (places & told), (talk.case.id, step.id)
                assert not (places and all_told), (talk.case.id, step.id)
            if step.task == "region content" and step.format == "yes_no":
                assert not zones_told & set(made.targets(step)), (talk.case.id, step.id)
                all_told = True
            if step.task == "presence" and slot(step, "at") is not None and made.label(step) == "yes":
                about = made.facts(step, "truth")[0].about
                told.add(about)
                zones_told |= set(record(talk.study, about).location.zones)


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_only_the_recorded_attributes_are_asked(made):
    bare = made.study(made.finding("pneumothorax", severity="mild"))
    tasks = Counter(
        step.task
        for case in made.talks(20, bare, quotas=made.everything)
        for step in case.steps
        if step.stage == 3
    )
    assert set(tasks) <= {"severity", "statement", "description", "vignette"}
    assert tasks["severity"] > 0


def test_a_study_without_attributes_has_no_stage_three(made):
    plain = made.study(made.finding("mass", "absent"), views=("lateral",))
    assert {step.stage for case in made.talks(10, plain) for step in case.steps}.isdisjoint({3})


def test_the_side_is_asked_for_before_the_place(made):
    sided = made.study(made.finding("pneumonia", zones=("right lower",), side="right", severity="mild"))
    for case in made.talks(40, sided, quotas=made.everything):
        tasks = [step.task for step in case.steps if step.task in ("side", "location")]
        assert tasks in (["side", "location"], ["side"], ["location"], [])


def test_each_value_is_as_often_right_as_wrong(made):
    """Whatever is said of a finding, it is right as often as wrong."""
    studies = made.crowd(180)
    among = made.survey(studies)
    counted = defaultdict(Counter)
    for n, study in enumerate(studies):
        for seed in range(3):
            for step in made.talk(study, among=among, seed=seed * 1000 + n, quotas=made.everything).steps:
                if step.task in SAID and step.format == "yes_no":
                    counted[step.task, slot(step, SAID[step.task])][step.key.label] += 1
    assert {value for task, value in counted if task == "severity"} == {"mild", "moderate", "severe"}
    total = Counter()
    for labels in counted.values():
        n = labels.total()
        assert abs(labels["yes"] - n / 2) < 2 * n**0.5 + 1
        total += labels
    n = total.total()
    assert n > 400
    assert abs(total["yes"] - n / 2) < 2 * n**0.5


def test_a_zone_that_is_asked_about_is_as_often_clear_as_not(asked):
    labels = Counter(
        step.key.label for _, step in asked if step.task == "region content" and step.format == "yes_no"
    )
    n = labels.total()
    assert n > 60
    assert abs(labels["yes"] - n / 2) < 2 * n**0.5, labels


@pytest.mark.parametrize("views", [("PA",), ("AP", "lateral")])
def test_regions_are_of_the_frontal_image(made, views):
    study = made.study(made.finding("mass", zones=("left upper",), side="left"), views=views)
    steps = [
        s
        for case in made.talks(15, study, quotas=made.everything)
        for s in case.steps
        if s.task == "region content"
    ]
    assert steps
    assert {step.uses for step in steps} == {("v1",)}


def test_only_zones_that_are_held_or_surely_clear_are_asked_about(made):
    study = made.study(made.finding("mass", zones=("left upper",), side="left"))
    asked, options = Counter(), Counter()
    for case in made.talks(60, study, quotas=made.everything):
        for step in case.steps:
            if step.task == "region content":
                asked.update((zone, step.format) for zone in made.targets(step))
            if step.task == "location" and step.multiple:
                options.update(option.text for option in step.options)
    sure = {zone for zone in ZONES if zone != "left mid zone"}
    assert {zone for zone, _ in asked} == sure
    assert {zone for zone, form in asked if form == "yes_no"} > {"left upper zone"}
    assert set(options) == sure


def test_no_zone_is_asked_about_where_none_is_certainly_clear(made):
    study = made.study(
        made.finding("mass", zones=("left mid",), side="left"),
        made.finding("pneumonia", zones=("right mid",), side="right"),
    )
    steps = [
        s
        for case in made.talks(40, study, quotas=made.everything)
        for s in case.steps
        if s.task == "region content"
    ]
    assert {(step.format, *made.targets(step)) for step in steps} == {
        ("open", "left mid zone"),
        ("open", "right mid zone"),
    }


@pytest.mark.parametrize(
    ("name", "certainty", "said"),
    [
        ("cardiothoracic ratio", "present", True),
        ("cardiothoracic ratio", "uncertain", False),
        ("extent", "present", False),
    ],
)
def test_a_measure_is_asked_for_only_if_the_finding_is_present_and_no_scale_is_needed(
    made, name, certainty, said
):
    measured = made.finding(
        "cardiomegaly",
        certainty,
        side="midline",
        severity="mild",
        measures=(Measure(name=name, value=0.5678, unit="1"),),
    )
    texts = [
        step.key.text
        for case in made.talks(20, made.study(measured), quotas=made.everything)
        for step in case.steps
        if step.task == "measure"
    ]
    assert bool(texts) == said
    assert all("0.57" in text and "0.5678" not in text for text in texts)


def test_a_description_with_less_detail_is_no_distractor(made):
    """Of a mild mass in one zone, "a mass" and "a mild mass" are right, too; another grade or a place apart is not."""
    zone = {"zones": ("right upper",), "side": "right"}
    true = made.study(made.finding("mass", severity="mild", **zone), indication="Cough.")
    others = [
        made.finding("mass"),
        made.finding("mass", severity="mild"),
        made.finding("mass", side="right"),
        made.finding("mass", zones=("right mid",), side="right"),
        made.finding("mass", site="right hilum", severity="mild"),
        made.finding("mass", severity="severe"),
        made.finding("mass", severity="moderate", **zone),
        made.finding("mass", side="left"),
        made.finding("mass", zones=("right lower",), side="right"),
    ]
    among = made.survey([true, *(made.study(one, name=f"o{n}") for n, one in enumerate(others))])
    quotas = made.with_quotas(vignette=1.0, zones=0.0)
    steps = [
        step
        for case in made.talks(20, true, among=among, quotas=quotas)
        for step in case.steps
        if step.task == "vignette"
    ]
    assert steps
    assert {tuple(made.right(step)) for step in steps} == {("a mild mass in the right upper zone",)}
    assert {text for step in steps for text in made.wrong(step)} == {
        "a severe mass",
        "a moderate mass in the right upper zone",
        "a mass on the left",
        "a mass in the right lower zone",
    }


def test_nothing_is_described_of_which_only_the_name_is_known(made):
    report = made.report("There is degenerative change. A calcified lymph node is seen.")
    bare = made.replace(made.finding("degenerative change"), evidence=(0,))
    node = made.replace(made.finding("calcified lymph node", appearance=("calcified",)), evidence=(1,))
    granuloma = made.finding("granuloma", appearance=("calcified",))
    cases = made.talks(20, made.study(bare, node, granuloma, report=report), quotas=made.everything)
    named = [
        (step.task, name)
        for case in cases
        for step in case.steps
        if step.task in ("description", "appearance", "statement")
        for name in made.targets(step)
    ]
    assert {name for _, name in named} == {"granuloma"}
    reasons = {(fact.about, fact.text) for case in cases for fact in case.facts if fact.name == "not asked"}
    assert ("description", "only its name is known") in reasons

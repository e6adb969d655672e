"""Stage 2: what is there and what is not, against the records themselves."""

import re
from collections import Counter

import pytest

from carina.studies.lookalikes import LOOKS_LIKE, MAY_BE_CALLED
from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.companions import COMPANIONS
from carina.trek.stages.findings import add_none_option, ask_findings, sample_option_count
from carina.trek.turn import Choice


def records(study, kind):
    return study.findings if kind == "finding" else study.devices


def there(study, kind=None):
    kinds = ("finding", "device") if kind is None else (kind,)
    return {
        thing.name: thing for kind in kinds for thing in records(study, kind) if thing.certainty != "absent"
    }


def clearly_absent(study, name):
    noticed = set(there(study))
    return (
        name not in noticed
        and not (LOOKS_LIKE.get(name, frozenset()) | MAY_BE_CALLED.get(name, frozenset())) & noticed
    )


def is_named(step):
    return step.task in ("presence", "device presence") and any(
        slot.name in ("finding", "a_finding") for slot in step.slots
    )


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk.study, step) for talk in conversations for step in talk.case.steps if step.stage == 2]


# ---- on phantoms -----------------------------------------------------------------------------------------------------


def test_every_family_is_asked_in_every_format(asked):
    assert {(step.task, step.format) for _, step in asked} >= {
        ("any abnormality", "yes_no"),
        ("any abnormality", "choice"),
        ("any device", "yes_no"),
        ("any device", "choice"),
        ("presence", "yes_no"),
        ("presence", "choice"),
        ("device presence", "yes_no"),
        ("device presence", "choice"),
        ("abnormalities", "open"),
        ("devices", "open"),
        ("abnormalities and devices", "open"),
        ("abnormalities", "choice"),
        ("devices", "choice"),
        ("abnormalities and devices", "choice"),
        ("others", "open"),
        ("others", "choice"),
    }
    variants = {step.template.rpartition(".")[0] for _, step in asked}
    assert {"s2.presence.yes_no-sited", "s2.presence.choice-multiple", "s2.others.open-neutral"} <= variants


def test_whether_anything_is_present_is_answered_by_the_records(made, asked):
    labels = Counter()
    for study, step in asked:
        if step.task not in ("any abnormality", "any device"):
            continue
        states = {
            thing.certainty
            for thing in records(study, "finding" if step.task == "any abnormality" else "device")
        }
        expected = "yes" if "present" in states else "uncertain" if "uncertain" in states else "no"
        assert made.label(step) == expected, (study.id, step.id)
        labels[step.task, expected] += 1
    assert {
        ("any abnormality", "yes"),
        ("any abnormality", "no"),
        ("any device", "yes"),
        ("any device", "no"),
    } <= set(labels)


def test_a_named_finding_is_answered_by_its_record(made, asked):
    labels = Counter()
    for study, step in asked:
        if not is_named(step):
            continue
        kind = "finding" if step.task == "presence" else "device"
        (name,) = made.targets(step)
        (truth,) = made.facts(step, "truth")
        assert made.facts(step, "target")[0].about == kind
        assert made.words.name(name).a in step.question or name in step.question
        recorded = [thing for thing in records(study, kind) if thing.name == name]
        held = there(study, kind).get(name)
        if held is None:
            assert clearly_absent(study, name)
            assert made.label(step) == "no"
            assert truth.text == "absent"
            assert truth.about == (recorded[0].id if recorded else "")
            evidence = recorded[0].evidence if recorded else ()
            (origin,) = made.facts(step, "negative")
            companion = any(name in COMPANIONS.get(other, ()) for other in there(study))
            assert origin.text == ("stated" if evidence else "sibling" if companion else "sampled")
            assert not any(thing.trend == "resolved" for thing in recorded)
        else:
            assert made.label(step) == {"present": "yes", "uncertain": "uncertain"}[held.certainty]
            assert (truth.about, truth.text) == (held.id, held.certainty)
            assert not made.facts(step, "negative")
            evidence = held.evidence
        assert [(mark.report, mark.sentence) for mark in step.evidence] == [("current", n) for n in evidence]
        opening = re.match(r"(?:yes|no)\b", step.key.text.lower())
        if step.key.label is not None:
            assert (opening.group() if opening else "uncertain") == step.key.label, step.key.text
        labels[kind, made.label(step)] += 1
    assert {("finding", label) for label in ("yes", "no", "uncertain")} <= set(labels)
    assert {("device", label) for label in ("yes", "no")} <= set(labels)


def test_all_three_origins_of_a_no_occur(made, asked):
    origins = Counter(fact.text for _, step in asked for fact in made.facts(step, "negative"))
    assert set(origins) == {"stated", "sibling", "sampled"}


def test_the_place_in_a_question_is_that_of_the_present_finding(made, asked):
    seen = Counter()
    for study, step in asked:
        at = next((slot.value for slot in step.slots if slot.name == "at"), None)
        if at is None:
            continue
        held = there(study).get(made.targets(step)[0])
        assert at in step.question
        if held is not None:
            assert at == made.words.at(held.location)
        seen[made.label(step)] += 1
    assert set(seen) == {"yes", "no"}


def test_options_are_present_or_clearly_absent_and_none_excludes_the_others(made, asked):
    none_said = made.words.wording.common["none_of_these"]
    counted = Counter()
    for study, step in asked:
        if step.format != "choice" or is_named(step) or step.task not in ("presence", "device presence"):
            continue
        kind = "finding" if step.task == "presence" else "device"
        texts = [option.text for option in step.options]
        none = texts[-1] if texts[-1] in none_said else None
        held = {name for name, thing in there(study, kind).items() if thing.certainty == "present"}
        for option, said in zip(step.options, step.key.kinds, strict=True):
            if option.text == none:
                assert said == ("key" if step.key.options == (option.id,) else "none")
                assert (said == "key") == (not held & set(texts))
            else:
                assert said == ("key" if option.text in held else "distractor")
                assert option.text in held or clearly_absent(study, option.text)
        assert step.multiple == (step.score == "set")
        assert (len(step.key.options) == 1) or step.multiple
        # What is named in the facts is what stands there to choose from.
        assert set(made.targets(step)) == set(texts) - {none}
        assert {fact.about for fact in made.facts(step, "truth")} == {
            thing.id for name, thing in there(study, kind).items() if name in texts
        }
        counted[
            "none right" if none and step.key.kinds[-1] == "key" else "none" if none else "plain",
            step.multiple,
        ] += 1
    assert {("none right", False), ("none", False), ("plain", False), ("plain", True)} <= set(counted)


def test_lists_name_all_present_findings_and_hedge_uncertain_ones(made, asked):
    checked = 0
    for study, step in asked:
        if step.task not in ("abnormalities", "devices", "abnormalities and devices"):
            continue
        kinds = {"abnormalities": ["finding"], "devices": ["device"]}.get(step.task, ["finding", "device"])
        things = [thing for kind in kinds for thing in there(study, kind).values()]
        assert {(fact.about, fact.text) for fact in made.facts(step, "truth")} == {
            (t.id, t.certainty) for t in things
        }
        said = step.key.text.lower()
        for thing in things:
            assert made.words.name(thing.name).a.removeprefix("a ").removeprefix("an ").lower() in said
        if any(thing.certainty == "uncertain" for thing in things):
            assert made.hedges.search(said), said
        for name in (*FINDINGS, *DEVICES):
            if name not in there(study) and name not in ("mass", "lung opacity"):
                assert made.words.name(name).a.lower() not in said
        checked += 1
    assert checked > 300


def test_others_are_what_the_question_does_not_name(made, asked):
    checked = Counter()
    for study, step in asked:
        if step.task != "others":
            continue
        findings = there(study, "finding")
        listed = {fact.about for fact in made.facts(step, "truth")}
        known = next((slot.value for slot in step.slots if slot.name == "known"), None)
        others = {thing.id for thing in findings.values() if thing.id in listed}
        assert listed == others
        if known is not None:
            for thing in findings.values():
                name = made.words.name(thing.name, possible=thing.certainty == "uncertain").a
                assert (name in known) != (thing.id in listed)
        else:
            assert not listed
        assert step.depends_on
        checked[bool(listed)] += 1
    assert set(checked) == {True, False}


LISTS = {
    "abnormalities": ("finding",),
    "devices": ("device",),
    "abnormalities and devices": ("finding", "device"),
}


def test_others_are_not_asked_for_where_earlier_keys_reveal_them_all(made, conversations):
    checked = 0
    for talk in conversations:
        told: set[str] = set()
        for step in talk.case.steps:
            if step.task == "others" and made.facts(step, "truth"):
                others = {fact.about for fact in made.facts(step, "truth")}
                checked += 1
                assert not others <= told, (talk.case.id, step.id)
            if step.task == "presence":
                right = set(made.right(step)) if step.format == "choice" else None
                for fact in made.facts(step, "truth"):
                    name = (
                        next(f.name for f in talk.study.findings if f.id == fact.about) if fact.about else ""
                    )
                    if fact.text == "present" and (right is None or {name, "Yes"} & right):
                        told.add(fact.about)
    assert checked > 10


def names_in(text):
    """The names of a list, without what joins them."""
    return re.split(r", | and ", text)


def nothing_said(made, task):
    return made.words.wording.phrases[2]["nothing"].get(task, [])


def chosen_lists(asked):
    return [(study, step) for study, step in asked if step.task in LISTS and step.format == "choice"]


def test_only_the_right_list_names_exactly_what_is_present(made, asked):
    """Wrong lists have another name, clearly absent, in the place of one that is there."""
    seen = Counter()
    for study, step in chosen_lists(asked):
        things = [thing for kind in LISTS[step.task] for thing in there(study, kind).values()]
        assert {thing.certainty for thing in things} <= {"present"}
        said = {made.words.name(thing.name).a for thing in things}
        absent = {made.words.name(name).a for name in (*FINDINGS, *DEVICES) if clearly_absent(study, name)}
        (right,) = made.right(step)
        lists = [text for text in made.wrong(step) if text not in nothing_said(made, step.task)]
        seen[step.task, "nothing" if not things else "something"] += 1
        if not things:
            assert right in nothing_said(made, step.task)
            assert all(names_in(text)[0] in absent for text in lists)
            assert all(len(names_in(text)) == 1 for text in lists)
            continue
        assert set(names_in(right)) == said
        for text in lists:
            assert len(names_in(text)) == len(names_in(right))
            changed = [(a, b) for a, b in zip(names_in(right), names_in(text), strict=True) if a != b]
            ((_, instead),) = changed
            assert instead in absent
        places = {
            place
            for text in lists
            for place, (a, b) in enumerate(zip(names_in(right), names_in(text), strict=True))
            if a != b
        }
        assert len(places) <= 1
        assert len(step.options) > len(lists) + 1 or lists
        assert step.restates == (len(things) > 1)
        assert [fact.text for fact in made.facts(step, "listed")] == [
            made.words.name(thing.name).a for thing in things
        ]
    assert {(task, "something") for task in LISTS} <= set(seen)
    assert seen["abnormalities", "nothing"] > 0


def test_no_other_question_asks_about_the_name_in_which_lists_differ(made, conversations):
    """Else earlier answers would tell which list is right."""
    for talk in conversations:
        named = {
            made.words.name(name).a
            for step in talk.case.steps
            if step.task in ("presence", "device presence")
            for name in made.targets(step)
        }
        for _, step in chosen_lists([(talk.study, step) for step in talk.case.steps]):
            lists = [set(names_in(option.text)) for option in step.options]
            apart = set.union(*lists) - set.intersection(*lists)
            assert not apart & named, (talk.case.id, step.id)
            nothing = [o.text for o in step.options if o.text in nothing_said(made, step.task)]
            if nothing:
                told = "any abnormality" if step.task == "abnormalities" else "any device"
                assert told not in {before.task for before in talk.case.steps}


def test_nothing_is_offered_where_it_is_right_and_where_it_is_wrong(made, asked):
    offered = Counter(
        made.right(step)[0] in nothing_said(made, step.task)
        for _, step in chosen_lists(asked)
        if {option.text for option in step.options} & set(nothing_said(made, step.task))
    )
    assert set(offered) == {True, False}


def test_one_of_the_options_accompanies_what_is_known(made, asked):
    none_said = made.words.wording.common["none_of_these"]
    by_hand = made.study(made.finding("fracture"), made.finding("cardiomegaly"), made.finding("mass"))
    cases = made.talks(80, by_hand, quotas=made.everything)
    right_none = Counter()
    for study, step in [*asked, *((by_hand, step) for case in cases for step in case.steps)]:
        if step.task != "others" or step.format != "choice":
            continue
        held = {name for name, thing in there(study, "finding").items() if thing.certainty == "present"}
        (right,) = made.right(step)
        texts = {option.text for option in step.options}
        if right in none_said:
            assert not held & texts
        else:
            assert texts & held == {right}
        assert all(text in none_said or clearly_absent(study, text) for text in made.wrong(step))
        known = next(slot.value for slot in step.slots if slot.name == "known")
        assert right not in known
        assert step.restates
        assert step.depends_on
        right_none[right in none_said] += 1
    assert right_none[False] > 5


def test_a_name_is_no_more_often_right_than_wrong_in_lists(made):
    """However common it is: of two names that take each other's place, each is right half of the time."""
    studies = made.crowd(
        240, names=("pneumonia", "pleural effusion", "cardiomegaly", "fracture", "pneumothorax")
    )
    among = made.survey(studies)
    right, chance = Counter(), Counter()
    for seed in range(6):
        for study in studies:
            draft = made.draft(study, among=among, seed=seed)
            ask_findings(draft)
            for turn in draft.turns:
                if turn.task == "abnormalities" and turn.format == "choice":
                    for choice in turn.choices:
                        right[choice.text] += choice.right
                        chance[choice.text] += 1 / len(turn.choices)
    names = [name for name in chance if not name.startswith("no")]
    assert len(names) == 5
    for name in names:
        assert abs(right[name] - chance[name]) < 4 * chance[name] ** 0.5 + 1, (name, right, chance)


def test_a_choice_among_lists_is_the_same_for_the_same_seed(made):
    study = made.study(made.finding("fracture"), made.finding("cardiomegaly"), made.device("chest tube"))
    among = made.survey([*made.crowd(), study])
    chosen = 0
    for seed in range(40):
        one, other = (made.talk(study, among=among, seed=seed) for _ in range(2))
        assert one == other
        chosen += len(chosen_lists([(study, step) for step in one.steps]))
    assert chosen > 0


def test_in_any_order_a_choice_among_lists_comes_after_the_keys_it_reveals(made):
    study = made.study(made.finding("fracture"), made.finding("cardiomegaly"), made.finding("mass"))
    chosen = 0
    for case in made.talks(60, study, shuffled=1.0, quotas=made.with_quotas(others=0.3)):
        closed = [n for n, s in enumerate(case.steps) if s.task in ("presence", "any abnormality")]
        for number, step in enumerate(case.steps):
            if step.task in (*LISTS, "others") and step.format == "choice":
                assert max(closed, default=-1) < number
                chosen += 1
    assert chosen > 5


def test_an_uncertain_finding_is_in_no_choice_of_lists(made):
    study = made.study(made.finding("fracture"), made.finding("mass", "uncertain"), made.device("pacemaker"))
    chosen = [
        step
        for case in made.talks(60, study, quotas=made.with_quotas(others=0.0))
        for _, step in chosen_lists([(study, step) for step in case.steps])
    ]
    assert {step.task for step in chosen} <= {"devices"}


def test_no_finding_is_named_in_two_closed_questions(made, conversations):
    for talk in conversations:
        named = Counter(
            name
            for step in talk.case.steps
            if step.task in ("presence", "device presence")
            for name in made.targets(step)
        )
        assert set(named.values()) <= {1}, (talk.case.id, named)


def test_lists_come_after_everything_closed(made, conversations):
    for talk in conversations:
        stage = [step for step in talk.case.steps if step.stage == 2]
        closed = [number for number, step in enumerate(stage) if made.closed(step)]
        told = [number for number, step in enumerate(stage) if step.format == "open"]
        assert not closed or not told or max(closed) < min(told)


def test_no_turn_depends_on_a_finding_that_no_question_has_named(made, conversations):
    """Whoever depends on a question finds what it names in that question or its key."""
    for talk in conversations:
        steps = {step.id: step for step in talk.case.steps}
        for step in talk.case.steps:
            if step.stage != 3 or step.task in ("region box", "region content"):
                continue
            for earlier in (steps[name] for name in step.depends_on):
                truths = {fact.about for fact in made.facts(earlier, "truth")}
                about = {fact.about for fact in step.facts if fact.name != "target"}
                assert about <= truths
                words = f"{earlier.question} {earlier.key.text}".lower()
                name = made.targets(step)[0]
                assert name in words or made.words.name(name).a in words, (talk.case.id, step.id, earlier.id)


def test_other_findings_are_asked_for_instead_of_lists(conversations):
    seen = Counter()
    for talk in conversations:
        tasks = [step.task for step in talk.case.steps if step.stage == 2]
        lists = {"abnormalities", "devices", "abnormalities and devices"} & set(tasks)
        assert not (lists and "others" in tasks), talk.case.id
        seen["others" if "others" in tasks else "lists" if lists else "neither"] += 1
    assert min(seen["others"], seen["lists"]) > 50


def test_a_kind_that_is_known_to_be_absent_is_not_listed(made, conversations):
    told = Counter()
    for talk in conversations:
        said = {s.task: made.label(s) for s in talk.case.steps if s.task.startswith("any ")}
        tasks = {step.task for step in talk.case.steps}
        for opening, task in (("any abnormality", "abnormalities"), ("any device", "devices")):
            if said.get(opening) == "no":
                assert not {task, "abnormalities and devices"} & tasks, talk.case.id
                told[opening] += 1
    assert min(told["any abnormality"], told["any device"]) > 10


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_questions_by_name_do_not_exceed_their_quota(made):
    names = [f"shadow {letter}" for letter in "abcdefghijklmnopqrst"]
    studies = [
        made.study(
            *(made.finding(name, "present" if (k + n) % 2 else "absent") for k, name in enumerate(names)),
            name=f"s{n}",
        )
        for n in range(20)
    ]
    among = made.survey(studies)
    most = 0
    for seed in range(20):
        draft = made.draft(
            studies[seed], among=among, seed=seed, quotas=made.with_quotas(named=5, choices=0.0)
        )
        ask_findings(draft)
        most = max(most, sum(turn.task == "presence" for turn in draft.turns))
    assert most == 5


def test_findings_of_the_same_name_are_listed_once_and_not_asked_by_name(made):
    twice = made.study(
        made.finding("nodule", number="f1", zones=("left upper",)),
        made.finding("nodule", number="f2", zones=("right lower",)),
        made.finding("fracture"),
    )
    listed = 0
    for case in made.talks(30, twice, quotas=made.everything):
        assert not any(
            "nodule" in made.targets(s)
            for s in case.steps
            if s.stage in (2, 3) and made.closed(s) and s.task != "region content"
        )
        lists = [s.key.text for s in case.steps if s.task in ("abnormalities", "abnormalities and devices")]
        # What accompanies something known is asked instead of a list.
        assert bool(lists) != any(s.task == "others" for s in case.steps)
        assert all(text.count("nodule") == 1 for text in lists)
        listed += len(lists)
    assert listed > 0


def test_uncertain_is_a_label_of_its_own(made):
    doubtful = made.study(made.finding("pneumothorax", "uncertain"), made.device("pacemaker", "uncertain"))
    among = made.survey([*made.crowd(), doubtful])
    labels = Counter()
    for case in made.talks(60, doubtful, among=among, quotas=made.everything):
        for step in case.steps:
            if step.stage == 2 and made.closed(step) and not made.facts(step, "negative"):
                assert step.format == "yes_no"
                labels[step.task, step.key.label] += 1
    assert {label for _, label in labels} == {"uncertain"}
    assert {("presence", "uncertain"), ("device presence", "uncertain")} <= set(labels)


def test_none_of_these_is_right_as_often_as_any_other_option(made):
    draft = made.draft(made.study(made.finding("mass")))
    right = {}
    for _ in range(9000):
        number = sample_option_count(draft)
        options = add_none_option(
            draft, Choice("right", right=True), [Choice(f"wrong {n}") for n in range(number - 1)]
        )
        assert sum(option.right for option in options) == 1
        assert sum(option.none for option in options) <= 1
        if options[-1].none:
            right.setdefault(len(options), Counter())[options[-1].right] += 1
            assert options[-1].right == (not any(option.text == "right" for option in options))
    for number, counted in right.items():
        n = counted.total()
        assert abs(counted[True] / n - 1 / number) < 4 * (1 / n) ** 0.5 / 2 + 0.01, (
            number,
            counted,
        )
    assert sum(counted.total() for counted in right.values()) > 1500


def test_numbers_of_options_vary(made):
    draft = made.draft(made.study(made.finding("mass")))
    counted = Counter(sample_option_count(draft) for _ in range(3000))
    assert set(counted) == {2, 3, 4, 5, 6}
    assert max(counted.values()) < 2000


def test_a_study_with_nothing_but_a_device_is_not_asked_whether_it_is_normal(made):
    device = made.study(made.finding("mass", "absent"), made.device("pacemaker"), name="d")
    clear = made.study(made.finding("mass", "absent"), made.device("pacemaker", "absent"), name="c")
    among = made.survey([*made.crowd(), device, clear])

    def opened(study):
        cases = made.talks(60, study, among=among, quotas=made.everything)
        return Counter(s.task for case in cases for s in case.steps if s.task.startswith("any "))

    assert set(opened(device)) == {"any device"}
    assert opened(clear)["any abnormality"] > 0


def test_a_choice_has_at_most_six_options(made):
    names = [f"shadow {letter}" for letter in "abcdefghijklmnopqrst"]
    studies = [
        made.study(
            *(made.finding(name, "present" if (k + n) % 2 else "absent") for k, name in enumerate(names)),
            name=f"s{n}",
        )
        for n in range(20)
    ]
    among = made.survey(studies, choices=1.0)
    sizes = Counter()
    for seed, study in enumerate(studies):
        draft = made.draft(study, among=among, seed=seed, quotas=made.with_quotas(choices=1.0))
        ask_findings(draft)
        for turn in draft.turns:
            if turn.multiple:
                assert {choice.right for choice in turn.choices} == {True, False}
                sizes[len(turn.choices)] += 1
    assert sizes[6] > 5
    assert max(sizes) == 6

"""Whole conversations: gates, images, order, and no key that an earlier turn tells."""

import re
from collections import Counter, defaultdict
from functools import lru_cache
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.cases import Constraints
from carina.cases.faults import faults
from carina.trek.facts import StudyTime, TrekCaseFacts, TrekStepFacts
from carina.trek.options import Quotas

CLOSED_ATTRIBUTES = ("location", "side", "severity", "appearance", "distribution", "position")
TRENDS = re.compile(
    r"\bnew\b|newly|increas|decreas|worse|improv|unchanged|stable|interval|resol|progress|regress|prior|previous"
    r"|compar|earlier",
    re.IGNORECASE,
)
VIEWS = re.compile(r"\bPA\b|\bAP\b|posteroanterior|postero-anterior|anteroposterior|antero-posterior")


@pytest.fixture(scope="module")
def shuffled(made, phantoms):
    """The same in random order."""
    among = made.survey(phantoms, choices=Quotas().choices)
    done = []
    for seed in range(3):
        for one in phantoms:
            before, after = made.neighbours(one, phantoms)
            cases = [
                made.talk(one, before, after, among=among, seed=seed, shuffled=share, quotas=made.everything)
                for share in (0.0, 1.0)
            ]
            done.append(
                SimpleNamespace(study=one, before=before, after=after, case=cases[1], staged=cases[0])
            )
    return done


@pytest.fixture(scope="module")
def both(conversations, shuffled):
    return [*conversations, *shuffled]


# ---- form ------------------------------------------------------------------------------------------------------------


def test_every_case_is_consistent(both):
    assert [(t.case.id, fault) for t in both for fault in faults(t.case)] == []


def test_a_case_states_id_patient_split_and_neighbours_of_its_study(both):
    for talk in both:
        case, study = talk.case, talk.study
        assert (case.id, case.protocol, case.study, case.patient, case.source, case.split) == (
            f"trek-{study.id}",
            "trek",
            study.id,
            study.patient,
            study.source,
            study.split,
        )
        assert (case.context.indication, case.context.age, case.context.sex) == (
            study.indication,
            study.age,
            study.sex,
        )
        known = {study.id: study}
        known |= {other.id: other for other in (talk.before, talk.after) if other is not None}
        facts = TrekCaseFacts.of(case)
        linked = {"current": study.id, "reference": case.reference_study, "later": case.later_study}
        assert facts == TrekCaseFacts(
            times={
                role: StudyTime(order=known[name].order, date=known[name].date.isoformat())
                for role, name in linked.items()
                if name is not None
            },
            not_asked=facts.not_asked,
            looked_for={"finding": "every", "device": "every"},
        )


def test_the_declared_records_hold_every_fact_in_the_order_of_its_rows(both):
    for talk in both:
        assert TrekCaseFacts.of(talk.case).rows() == talk.case.facts
        for step in talk.case.steps:
            assert TrekStepFacts.of(step).rows() == step.facts


def test_every_step_has_the_fields_of_its_format(made, both):
    scores = {"open": "text", "report": "text", "yes_no": "exact", "boxes": "boxes"}
    for talk in both:
        assert [step.id for step in talk.case.steps] == [f"t{n}" for n in range(1, len(talk.case.steps) + 1)]
        for step in talk.case.steps:
            assert step.score == (scores.get(step.format) or ("set" if step.multiple else "exact"))
            assert step.key.text
            assert made.facts(step, "target")
            assert (step.key.label is not None) == (step.format == "yes_no")
            assert bool(step.options) == (step.format == "choice") == bool(step.key.kinds)
            assert bool(step.key.boxes) == (step.format == "boxes")
            assert bool(step.key.sections) == (step.format == "report")
            assert step.template.startswith(f"s{step.stage}.{step.task.replace(' ', '-')}.")
            words = len(step.key.text.split())
            limits = step.constraints
            assert limits.max_words is None or words <= limits.max_words
            assert limits.min_words is None or words >= limits.min_words
            assert not re.search(r"\{\w*\}", step.question + step.key.text + (step.context or ""))
            assert not re.search(r"\b(\w+) \1\b", step.question.split("\n")[0].replace("had had", "")), (
                step.question
            )
            assert "  " not in step.question
            assert step.question[:1].isupper() or step.question[:1] in "\"'“0123456789"


def test_every_slot_of_the_wording_is_filled_and_stands_in_the_question(made, conversations):
    pools = {
        template.id: template for pool in made.words.wording.pools.values() for template in pool.questions
    }
    for talk in conversations:
        for step in talk.case.steps:
            template = pools[step.template]
            filled = {slot.name: slot.value for slot in step.slots}
            assert set(filled) == set(template.slots)
            assert all(value.strip() for value in filled.values())
            assert template.text.format(**filled).lower() in step.question.lower()


def test_a_question_that_needs_earlier_turns_lists_them(made, both):
    hints = made.words.wording.common["instruction"]["history"]
    seen = 0
    for talk in both:
        for step in talk.case.steps:
            if any(hint in step.question for hint in hints):
                assert step.depends_on, (talk.case.id, step.id, step.task)
                seen += 1
    assert seen > 50


# ---- gates -----------------------------------------------------------------------------------------------------------


def test_stage_five_is_asked_exactly_where_there_is_a_reference(both):
    seen = Counter()
    for talk in both:
        compared = any(step.stage == 5 for step in talk.case.steps)
        referred = [image for image in talk.case.images if image.role == "reference"]
        assert compared == (talk.case.reference_study is not None) == bool(referred)
        if compared:
            assert talk.case.reference_study == talk.before.id
            assert {image.key for image in referred} <= {image.key for image in talk.before.images}
        seen[compared] += 1
    assert min(seen.values()) > 50


def test_a_first_study_is_never_compared_and_a_last_one_has_no_outlook(both):
    for talk in both:
        stages = {step.stage for step in talk.case.steps}
        assert talk.before is not None or 5 not in stages
        assert talk.after is not None or 6 not in stages
        assert {2, 8} <= stages


def test_all_eight_stages_are_reached(conversations):
    reached = Counter(len({step.stage for step in talk.case.steps}) for talk in conversations)
    assert reached[8] > 0
    assert {step.stage for talk in conversations for step in talk.case.steps} == set(range(1, 9))


# ---- images ----------------------------------------------------------------------------------------------------------


def test_images_enter_once_in_order_and_the_reference_with_the_first_comparison(both):
    for talk in both:
        case = talk.case
        shown = [view for step in case.steps for view in step.shows]
        assert shown == [view.id for view in case.views]
        assert [view.panels[0].image for view in case.views] == [image.key for image in case.images]
        roles = [image.role for image in case.images]
        assert roles == sorted(roles)  # current, then reference
        current = tuple(v.id for v, role in zip(case.views, roles, strict=True) if role == "current")
        assert case.steps[0].shows[: len(current)] == current
        compared = [step for step in case.steps if step.stage == 5]
        for step in case.steps[1:]:
            assert not step.shows or step is compared[0]
        entered: set[str] = set()
        for step in case.steps:
            entered |= set(step.shows)
            assert step.uses
            assert set(step.uses) <= entered
            assert step.stage == 5 or set(step.uses) <= set(current)


def introduced(made, talks):
    """Checks the lead-ins; how many steps bring the images of both studies."""
    leads = made.words.wording.common["lead_in"]
    both_at_once = 0
    for talk in talks:
        for step in talk.case.steps:
            places = {}
            for role in ("current", "reference"):
                several = sum(image.role == role for image in talk.case.images) > 1
                numbers = ("several", "all_of_several") if several else ("one", "only_one")
                for number in leads[role]:
                    for lead in leads[role][number]:
                        if lead in step.question:
                            assert number in numbers
                            places[role] = step.question.index(lead)
            roles = {talk.case.image(talk.case.view(v).panels[0].image).role for v in step.shows}
            assert set(places) == roles
            if len(places) == 2:
                both_at_once += 1
                assert places["current"] < places["reference"], step.question
    return both_at_once


@pytest.mark.parametrize(
    ("views", "all_shown"),
    [
        (("unknown",), True),
        (("unknown",) * 3, False),
        (("PA", "lateral"), True),
        (("PA", "lateral", "unknown"), False),
        (("PA", "PA"), False),
    ],
)
def test_only_a_conversation_that_shows_all_images_of_the_study_says_so(made, views, all_shown):
    study = made.study(made.finding("mass", zones=("left upper",)), views=views)
    first = [case.steps[0].question for case in made.talks(60, study)]
    leads = made.words.wording.common["lead_in"]["current"]
    whole = [*leads["only_one"], *leads["all_of_several"]]
    assert any(lead in question for lead in whole for question in first) == all_shown


def test_images_are_introduced_with_their_role(made, both):
    introduced(made, both)


def test_where_all_images_enter_at_once_the_current_ones_come_first(made):
    clear = [made.study(made.finding("mass", "absent"), name=name) for name in "ab"]
    among = made.survey(clear)
    quotas = Quotas(view=0.0, lists=0.0, regions=0.0)
    cases = made.talks(60, clear[1], clear[0], among=among, shuffled=1.0, quotas=quotas)
    talks = [SimpleNamespace(case=case) for case in cases]
    assert introduced(made, talks) > 0


# ---- order -----------------------------------------------------------------------------------------------------------


def test_staged_conversations_are_in_the_order_of_stages(conversations, shuffled):
    for case in [*(t.case for t in conversations), *(t.staged for t in shuffled)]:
        stages = [step.stage for step in case.steps]
        assert case.order == "staged"
        assert stages == sorted(stages)


def bare(step):
    """What is asked, wherever it stands."""
    return (step.stage, step.task, step.template, tuple(made_slots(step)), msgspec.json.encode(step.facts))


def made_slots(step):
    return [(slot.name, slot.value) for slot in step.slots]


def test_shuffled_conversations_have_the_same_turns_in_another_order(shuffled):
    moved = 0
    for talk in shuffled:
        assert Counter(map(bare, talk.case.steps)) == Counter(map(bare, talk.staged.steps))
        stages = [step.stage for step in talk.case.steps]
        moved += stages != sorted(stages)
        # Where chance leaves the order as it was, it is not called another.
        assert talk.case.order == ("staged" if stages == sorted(stages) else "shuffled")
    assert moved > 0.8 * len(shuffled)


def test_no_turn_depends_on_a_later_one(both):
    for talk in both:
        place = {step.id: number for number, step in enumerate(talk.case.steps)}
        for step in talk.case.steps:
            for name in step.depends_on:
                assert place[name] < place[step.id]
                assert talk.case.step(name).stage <= step.stage
            assert list(step.depends_on) == sorted(set(step.depends_on), key=place.get)


def test_the_requested_share_of_conversations_is_shuffled(made, phantoms):
    among = made.survey(phantoms)
    orders = Counter(
        made.talk(one, among=among, seed=seed, shuffled=0.4).order for seed in range(4) for one in phantoms
    )
    assert 0.3 < orders["shuffled"] / orders.total() < 0.5


# ---- what turns tell -------------------------------------------------------------------------------------------------


def mentions(text, name):
    return re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) is not None


def said(step):
    return f"{step.context or ''} {step.question} {step.key.text}"


def leaks(made, talk):
    """Closed turns whose key an earlier turn has told: as (closed turn, turn that tells, why)."""
    checks = {
        "presence": tells_presence,
        "device presence": tells_presence,
        "any abnormality": tells_anything,
        "any device": tells_anything,
        "change": tells_course,
        "view": tells_view,
        "quality": tells_quality,
    }
    for number, step in enumerate(talk.case.steps):
        check = checks.get(step.task, tells_attribute if step.stage == 3 else None)
        if check is None or not made.closed(step):
            continue
        for other in talk.case.steps[:number]:
            why = check(made, talk.study, step, other)
            if why:
                yield step.id, other.id, why


def tells_presence(made, study, step, other):
    # The request is not a reading.
    text = said(other).replace(study.indication or "\0", "")
    for name in made.targets(step):
        spoken = {name, made.words.name(name).a.removeprefix("a ").removeprefix("an ")}
        if any(mentions(text, word) for word in spoken):
            return f"names {name}"
    return None


def tells_anything(_made, study, step, other):
    if other.stage == 1 or other.task in ("region box", "any abnormality", "any device"):
        return None
    recorded = study.findings if step.task == "any abnormality" else study.devices
    told = [thing.name for thing in recorded if mentions(said(other), thing.name)]
    listed = other.task in ("abnormalities", "devices", "abnormalities and devices")
    return f"tells of {told}" if told or listed or other.task == "region content" else None


def tells_attribute(_made, study, step, other):
    by_id = {thing.id: thing for thing in (*study.findings, *study.devices)}
    text = said(other)
    for fact in step.facts:
        if fact.name not in CLOSED_ATTRIBUTES or other.task in ("presence", "device presence"):
            continue
        thing = by_id[fact.about]
        values = thing.appearance if fact.name == "appearance" else (fact.text,)
        speaks = mentions(text, thing.name)
        # The value may be that of another finding that the same turn speaks of.
        another = any(one.name != thing.name and mentions(text, one.name) for one in by_id.values())
        if speaks and not another and any(mentions(text, value) for value in values):
            return f"tells {fact.name} of {thing.name}"
    return None


def tells_course(made, _study, step, other):
    (name,) = made.targets(step)
    told = " ".join([other.key.text, *(slot.value for slot in other.slots if slot.name == "phrase")])
    return f"tells the course of {name}" if mentions(told, name) and TRENDS.search(told) else None


def tells_view(_made, _study, _step, other):
    return "tells the projection" if VIEWS.search(said(other)) else None


def tells_quality(_made, _study, _step, other):
    return "tells the quality" if other.task == "quality" else None


def test_no_turn_reveals_the_key_of_a_later_closed_one(made, conversations):
    assert [(t.case.id, *leak) for t in conversations for leak in leaks(made, t)] == []


def test_no_turn_reveals_the_key_of_a_later_closed_one_in_any_order(made, shuffled):
    assert [(t.case.id, *leak) for t in shuffled for leak in leaks(made, t)] == []


def test_the_check_for_leaks_finds_them(made, conversations):
    """Turned round, conversations tell a lot."""
    found = Counter()
    for talk in conversations[:270]:
        backwards = msgspec.structs.replace(talk.case, steps=talk.case.steps[::-1])
        turned = SimpleNamespace(study=talk.study, case=backwards)
        found.update(why.split()[0] + " " + why.split()[1] for _, _, why in leaks(made, turned))
    assert {"tells severity", "tells location", "tells the", "tells of"} <= set(found)
    assert any(why.startswith("names") for why in found)


def test_reports_and_prompts_that_reveal_everything_come_last(both):
    for talk in both:
        stages = [step.stage for step in talk.case.steps]
        assert 8 not in stages[: -stages.count(8)], talk.case.id


def test_a_place_whose_side_is_known_is_asked_for_in_an_open_question(made, both):
    after_side, closed = 0, 0
    for talk in both:
        sides: set[str] = set()
        for step in talk.case.steps:
            if step.task == "side":
                sides.update(made.targets(step))
            elif step.task == "location":
                told = set(made.targets(step)) & sides
                assert not (told and made.closed(step)), talk.case.id
                after_side, closed = after_side + bool(told), closed + made.closed(step)
    assert min(after_side, closed) > 20


def test_a_side_is_not_asked_for_after_the_place(made, both):
    for talk in both:
        placed: set[str] = set()
        for step in talk.case.steps:
            if step.task == "location":
                placed.update(made.targets(step))
            assert step.task != "side" or not placed & set(made.targets(step)), talk.case.id


def test_the_whole_comparison_comes_after_single_trends(both):
    for talk in both:
        tasks = [step.task for step in talk.case.steps]
        if "comparison" in tasks:
            assert "trend" not in tasks[tasks.index("comparison") :], talk.case.id


# ---- the same and not the same ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_words_and_another_seed_others(made, phantoms):
    among = made.survey(phantoms)
    one, again, other = (made.talk(phantoms[0], among=among, seed=seed) for seed in (1, 1, 2))
    assert msgspec.json.encode(one) == msgspec.json.encode(again)
    assert [step.question for step in one.steps] != [step.question for step in other.steps]


def test_neighbours_change_nothing_about_other_stages_than_their_own(made, phantoms):
    """The order of work is no part of chance: a study alone gives the same first stages as with its neighbours."""
    among = made.survey(phantoms)
    one = next(s for s in phantoms if all(made.neighbours(s, phantoms)))
    before, after = made.neighbours(one, phantoms)
    alone, linked = made.talk(one, among=among), made.talk(one, before, after, among=among)
    first = [bare(s) for s in alone.steps if s.stage == 2]
    assert first == [bare(s) for s in linked.steps if s.stage == 2]


def test_no_template_makes_more_than_two_percent_of_a_stage(conversations):
    """On a small set with a margin for chance."""
    counted = defaultdict(Counter)
    for talk in conversations:
        for step in talk.case.steps:
            counted[step.stage][step.template] += 1
    for stage, templates in counted.items():
        n = templates.total()
        ((name, most),) = templates.most_common(1)
        assert most / n < 0.02 + 3 * (0.02 / n) ** 0.5, (stage, name, most, n)


def test_the_indication_is_stated_once_in_the_requested_share(made, phantoms):
    among = made.survey(phantoms)
    told = Counter()
    for one in phantoms:
        for share in (0.0, 1.0):
            case = made.talk(one, among=among, indication=share)
            contexts = [step for step in case.steps if step.context is not None]
            assert len(contexts) <= 1
            assert all(step.stage in (2, 3) and one.indication in step.context for step in contexts)
            told[share, len(contexts)] += 1
    assert told[0.0, 1] == 0
    assert told[1.0, 1] > 80


@pytest.mark.parametrize(
    ("indication", "shown"),
    [
        ("XXXX.", None),
        ("XXXX-year-old male, XXXX", None),
        ("___ year old woman. Chest pain.", "Chest pain."),
        ("Chest pain.", "Chest pain."),
    ],
)
def test_an_indication_is_shown_without_removed_words(made, phantoms, indication, shown):
    among = made.survey(phantoms)
    texts = []
    for one in phantoms[:40]:
        asked = made.replace(one, indication=indication)
        case = made.talk(asked, among=among, indication=1.0, quotas=made.everything)
        assert case.context.indication == shown
        texts += [f"{step.context or ''} {step.question}" for step in case.steps]
    assert not any("XXXX" in text or "___ year" in text for text in texts)
    assert any("Chest pain." in text for text in texts) == (shown is not None)


# ---- odd studies -----------------------------------------------------------------------------------------------------


def test_names_outside_the_vocabulary_are_used_as_they_are(made):
    odd = made.study(
        made.finding("Azygos lobe (variant)", side="right", severity="mild"),
        made.finding("hiatus hernia", "uncertain", site="retrocardiac region"),
        made.finding("x-ray artefact", "absent"),
        made.device("brachytherapy seed", site="the left hilum"),
        views=("unknown",),
    )
    cases = made.talks(30, odd, quotas=made.everything)
    assert [fault for case in cases for fault in faults(case)] == []
    text = " ".join(said(step) for case in cases for step in case.steps)
    assert "azygos lobe (variant)" in text
    assert "the Azygos" not in text
    assert "hiatal hernia" in text  # by its name in the vocabulary
    assert "hiatus" not in text
    assert "the the" not in text


def test_text_of_a_record_that_looks_like_a_slot_is_unchanged(made):
    odd = made.study(made.finding("mass {age}", severity="mild"), indication="{finding} {0} 100% {")
    for case in made.talks(10, odd, quotas=made.everything, indication=1.0):
        for step in case.steps:
            assert step.context is None or "{finding} {0} 100% {" in step.context


def test_a_normal_study_has_a_conversation(made):
    clear = made.study(made.finding("mass", "absent"), made.device("pacemaker", "absent"))
    for case in made.talks(30, clear):
        assert {step.stage for step in case.steps} <= {1, 2, 3, 8}
        for step in case.steps:
            assert step.task != "others"
            if step.task in ("abnormalities", "devices") and step.format == "choice":
                assert made.right(step)[0] in made.words.wording.phrases[2]["nothing"][step.task]
            elif made.closed(step) and step.stage == 2:
                assert made.label(step) == "no"


def test_at_most_the_requested_number_of_images_is_shown(made):
    pair = made.study(made.finding("mass", severity="mild"), views=("PA", "lateral"))
    before = made.study(made.finding("mass", severity="severe"), views=("PA", "lateral"), name="b")
    for most, number in ((1, 2), (2, 4)):
        case = made.talks(1, pair, before, most_images=most)[0]
        assert len(case.images) == number


# ---- any study -------------------------------------------------------------------------------------------------------

NAMES = ("pneumonia", "mass", "nodule", "pleural effusion", "cardiomegaly", "odd shadow")
SIDES = (None, "right", "left", "bilateral", "midline")


@st.composite
def things(draw, made):
    """Findings and devices in any state, some twice."""
    found = []
    for number, name in enumerate(draw(st.lists(st.sampled_from(NAMES), max_size=5))):
        found.append(
            made.finding(
                name,
                draw(st.sampled_from(["present", "present", "absent", "uncertain"])),
                number=f"f{number}",
                zones=draw(st.lists(st.sampled_from(made.zones), max_size=6, unique=True)),
                side=draw(st.sampled_from(SIDES)),
                site=draw(st.sampled_from([None, None, None, "left hilum", "3 cm below the clavicle"])),
                severity=draw(st.sampled_from([None, "mild", "moderate", "severe"])),
                distribution=draw(st.sampled_from([None, "focal", "diffuse"])),
                appearance=draw(st.sampled_from([(), ("patchy",), ("patchy", "odd")])),
                trend=draw(st.sampled_from([None, None, "new", "worse", "unchanged", "resolved"])),
                boxed=draw(st.sampled_from([None, made.rectangle(5, 5, 20, 30)])),
            )
        )
    for number, name in enumerate(
        draw(st.lists(st.sampled_from(["pacemaker", "chest tube", "coil"]), max_size=3))
    ):
        found.append(
            made.device(
                name,
                draw(st.sampled_from(["present", "absent", "uncertain"])),
                number=f"d{number}",
                site=draw(st.sampled_from([None, "at the apex", "carina"])),
                position=draw(st.sampled_from([None, "adequate", "malpositioned"])),
                trend=draw(st.sampled_from([None, "new", "unchanged", "resolved"])),
            )
        )
    return found


@st.composite
def studies(draw, made, name, order):
    there = draw(things(made))
    ids = [thing.id for thing in there]
    ends = st.sampled_from(ids) if ids else st.nothing()
    relations = draw(st.lists(st.tuples(ends, ends), max_size=2)) if ids else []
    advised = draw(st.lists(st.lists(ends, max_size=2), max_size=2)) if ids else []
    return made.study(
        *there,
        name=name,
        order=order,
        views=draw(
            st.sampled_from([("PA",), ("AP", "lateral"), ("unknown",), ("lateral",), ("PA", "PA", "unknown")])
        ),
        quality=draw(st.sampled_from([None, made.good])),
        indication=draw(st.sampled_from([None, "Cough.", "Fall, {x}?"])),
        report=draw(st.sampled_from([None, made.report("A. B. C.", "D."), made.report(None, "D.")])),
        anatomy=draw(st.sampled_from([(), made.anatomy(f"{name}.png", heart=made.rectangle(1, 1, 50, 50))])),
        relations=tuple(
            made.relation(id=f"x{n}", subject=one, kind="suggests", object=other)
            for n, (one, other) in enumerate(relations)
        ),
        recommendations=tuple(
            made.recommendation(id=f"r{n}", action="chest CT", about=tuple(about))
            for n, about in enumerate(advised)
        ),
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
def test_any_study_has_a_sound_conversation(made, data, seed, shuffled):
    now = data.draw(studies(made, "now", 1))
    before = data.draw(st.none() | studies(made, "before", 0))
    after = data.draw(st.none() | studies(made, "after", 2))
    case = made.talk(
        now,
        before,
        after,
        among=surveyed(made.survey, made.crowd),
        seed=seed,
        shuffled=shuffled,
        quotas=made.everything,
    )
    brace = "{x}" in (now.indication or "")
    assert [fault for fault in faults(case) if not (brace and "slot" in fault)] == []
    stages = [step.stage for step in case.steps]
    assert (5 in stages) == (case.reference_study is not None)
    assert (6 in stages) == (case.later_study is not None)
    assert {2, 8} & set(stages)
    assert shuffled or stages == sorted(stages)
    assert [view for step in case.steps for view in step.shows] == [view.id for view in case.views]
    recorded = (*now.findings, *now.devices)
    if len({thing.name for thing in recorded}) == len(recorded) and not brace:
        assert list(leaks(made, SimpleNamespace(study=now, case=case))) == []
    uncertain = {thing.name for thing in recorded if thing.certainty == "uncertain"}
    for step in case.steps:
        assert len({" ".join(option.text.lower().split()) for option in step.options}) == len(step.options)
        assert len(step.options) != 1
        if step.task in ("presence", "device presence") and step.key.label == "no":
            assert not uncertain & set(made.targets(step))


@lru_cache(maxsize=1)
def surveyed(survey, crowd):
    """Of other studies: what is asked about may be unknown to the set."""
    return survey(crowd(60))


# ---- blanks ---------------------------------------------------------------------------------------------------------


def test_a_blank_is_answered_with_the_words_that_fit_into_it(made, conversations):
    told: Counter[str] = Counter()
    instruction = made.words.wording.common["instruction"]
    instructions = [*instruction["short"], *instruction["long"]]
    for talk in conversations:
        for step in talk.case.steps:
            if step.format != "open" or "____" not in step.question:
                continue
            told[step.task] += 1
            answer = step.key.text
            # To be filled in, not to be answered at some length.
            assert step.constraints == Constraints()
            assert not any(said in step.question for said in instructions)
            if step.task == "view":
                assert re.fullmatch(r"an? .+ view|.+ and .+ views", answer)
            elif step.task == "measure":
                (fact,) = made.facts(step, "measure")
                assert float(re.search(r"[\d.]+", answer)[0]) == pytest.approx(fact.value, abs=0.005)
            else:
                (fact,) = made.facts(step, step.task)
                assert answer == fact.text
    assert told["view"] > 5
    assert {"location", "severity", "appearance"} <= set(told)

"""One part: studies are read as conversations need them, and given up when none does any more."""

import pytest

from carina.store.workers import pool
from carina.studies import open_studies
from carina.trek import part
from carina.trek.neighbours import find_neighbours
from carina.trek.options import TrekOptions
from carina.trek.part import Job, make_cases, part_tasks, read_part_studies, survey_set

OPTIONS = TrekOptions(seed=3, part_size=16)


@pytest.fixture(scope="module")
def studies(made, phantoms, tmp_path_factory):
    """On disk, studies of a patient one after the other."""
    ordered = sorted(phantoms, key=lambda study: (study.patient, study.order))
    return open_studies(made.write(tmp_path_factory.mktemp("parts") / "studies", ordered))


@pytest.fixture(scope="module")
def linked(studies):
    return find_neighbours(studies, None)


@pytest.fixture(scope="module")
def parts(studies, linked):
    among = survey_set(studies, linked, OPTIONS)
    return list(part_tasks(Job(str(studies.directory), "nowhere", "", among, OPTIONS), linked))


def test_neighbours_from_other_parts_come_first_then_its_own_in_order(parts):
    apart = 0
    for task in parts:
        places = [place for place, _, _ in read_part_studies(task)]
        foreign = {*task.before, *task.after} - {-1, *task.places}
        assert places == [*sorted(foreign), *task.places]
        apart += len(foreign)
    assert apart > 0


def test_a_part_holds_the_studies_of_few_conversations_at_a_time(parts, monkeypatch):
    """Of a patient's studies in a row, only those wait that a conversation still needs."""
    read = 0
    given = part.subject_of

    def counted(*told, **more):
        nonlocal read
        read += 1
        return given(*told, **more)

    monkeypatch.setattr(part, "subject_of", counted)
    task = max(parts, key=lambda task: len(task.places))
    ahead = []
    for number, _ in enumerate(make_cases(task), start=1):
        ahead.append(read - number)
    foreign = {*task.before, *task.after} - {-1, *task.places}
    assert ahead[-1] == len(foreign)
    assert max(ahead) <= len(foreign) + 1


def test_workers_survey_as_one_process_does(studies, linked, parts, monkeypatch):
    monkeypatch.setattr(part, "_COUNTED_AT_ONCE", 5)
    with pool(workers=2) as shared:
        assert survey_set(studies, linked, OPTIONS, shared) == parts[0].job.survey


@pytest.mark.parametrize("most", [8, 24])
def test_of_a_large_set_an_even_sample_is_surveyed(studies, linked, monkeypatch, most):
    monkeypatch.setattr(part, "_MOST_SURVEYED", most)
    monkeypatch.setattr(part, "_BLOCK", 4)
    taken = []
    monkeypatch.setattr(
        part, "count_sample", lambda sample: taken.extend(sample.places) or part.SurveyCounts()
    )
    survey_set(studies, linked, OPTIONS)
    assert len(taken) == most
    assert taken[:4] == linked.chosen[:4].tolist()
    assert taken[-4:] == linked.chosen[-4:].tolist()

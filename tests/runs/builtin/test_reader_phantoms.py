"""The reader on phantoms of seeds on which none of its numbers was set. Phantoms and reader are deterministic: so are
the counts, and a bound that fails says that one of them has changed for the worse.
"""

import re

import numpy as np
import pytest
from tests.runs.builtin.chests import answer_text, png, step

from carina.cases import open_benchmark
from carina.cases.model import without_keys
from carina.cases.render import Views
from carina.percept import build_percept
from carina.phantom import PhantomOptions, make_studies
from carina.phantom.make import write_phantom
from carina.runs.builtin.reader import Reader
from carina.runs.records import Policy
from carina.runs.walk import Walk
from carina.studies import open_studies


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Every step of a small percept benchmark, answered with the right history."""
    folder = tmp_path_factory.mktemp("reader")
    write_phantom(folder / "studies", n=90, seed=5, options=PhantomOptions(size=256), workers=1)
    build_percept(open_studies(folder / "studies"), folder / "bench", per_cell=3, workers=1)
    bench = open_benchmark(folder / "bench")
    views, reader, found = Views(bench), Reader(), []
    for case in bench:
        walk = Walk(case, Policy(history="gold"))
        while walk.turn is not None:
            [reply] = reader.answer([walk.turn], lambda _case, view, case=case: views.png(case, view))
            walk.take(reply)
        found += walk.rows()
    return found


def share(rows, task, *labels):
    """Of the answered steps of a task, how many were right; of those alone with one of these right answers, if any."""
    chosen = [row for row in rows if row.task == task and (not labels or row.gold_options == labels)]
    assert all(row.status == "ok" for row in chosen)
    assert len(chosen) >= 8
    return sum(bool(row.correct) for row in chosen) / len(chosen)


def test_detection_is_far_above_a_blind_guess(rows):
    balanced = 0.5 * (share(rows, "detection", "yes") + share(rows, "detection", "no"))
    assert balanced >= 0.75


def test_contours_are_judged_better_than_by_a_blind_guess(rows):
    balanced = 0.5 * (share(rows, "contour evaluation", "yes") + share(rows, "contour evaluation", "no"))
    assert balanced > 0.5
    # Too few of each kind to be told one by one: contours, points and masks together.
    judged = [row for row in rows if row.stage in (2, 3)]
    assert len(judged) > 60
    assert sum(bool(row.correct) for row in judged) > 1.5 * sum(row.chance for row in judged)


@pytest.mark.parametrize("task", ["distribution", "location", "severity", "comparison"])
def test_attributes_of_a_contour_are_mostly_right(rows, task):
    assert share(rows, task) >= 0.75


STRUCTURES = {
    "heart": 0.6,
    "right lung": 0.75,
    "left lung": 0.75,
    "left mid zone": 0.7,
    "trachea": 0.45,
}


@pytest.fixture(scope="module")
def frontal():
    """Images with the boxes of their structures, in percent."""
    found = []
    for study, images in make_studies(20, 7, PhantomOptions(size=128)):
        for image in study.images:
            if image.view == "lateral":
                continue
            there = study.anatomy_on(image.key)
            boxes = {}
            for name in STRUCTURES:
                x, y, width, height = there[name].bbox
                corners = (x, y, x + width, y + height)
                boxes[name] = np.array(corners) * 100 / image.width
            found.append((png(images[image.key]), boxes))
    return found


def overlap(one, other):
    low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
    both = float(np.prod(np.maximum(high - low, 0)))
    return both / (float(np.prod(one[2:] - one[:2])) + float(np.prod(other[2:] - other[:2])) - both)


@pytest.mark.parametrize("name", STRUCTURES)
def test_boxes_of_structures_lie_on_them(frontal, name):
    asked = step("region box", "boxes", f"Where is the {name}? Answer in percent.")
    reader = Reader()
    found = []
    for picture, boxes in frontal:
        words = answer_text(reader, asked, v1=picture)
        found.append(overlap(np.array([float(n) for n in re.findall(r"\d+\.\d+", words)]), boxes[name]))
    assert np.mean(found) >= STRUCTURES[name]


def test_lateral_and_frontal_views_are_distinguished():
    asked = step("view", "open", "Which projection is this?")
    told = []
    for study, images in make_studies(12, 7, PhantomOptions(size=128)):
        for image in study.images:
            words = answer_text(Reader(), asked, v1=png(images[image.key]))
            told.append(("lateral" in words) == (image.view == "lateral"))
    assert len(told) > 15
    assert np.mean(told) >= 0.95


def test_answers_do_not_depend_on_the_answer_key(rows, tmp_path_factory):
    """Steps without a key get the answers that steps with one get: what the walk hands out has none anyway."""
    folder = next(
        path for path in tmp_path_factory.getbasetemp().glob("reader[0-9]*") if (path / "bench").is_dir()
    )
    bench = open_benchmark(folder / "bench")
    views, reader = Views(bench), Reader()
    case = next(case for case in bench if case.path == "RR")
    walk = Walk(without_keys(case), Policy(history="none"))
    assert walk.turn is not None
    assert walk.turn.step.key.options == ()
    [reply] = reader.answer([walk.turn], lambda _case, view: views.png(case, view))
    [known] = [row for row in rows if row.case == case.id and row.task == "detection"]
    assert reply.text == known.raw

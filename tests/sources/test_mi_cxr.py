"""MI-CXR: five visits in order of time, options by letter."""

import json

import pytest
from tests.sources.question_sets import PATIENT, read_cases, run_through, write_mimic_image

from carina.sources import SOURCES
from carina.sources._record import SourceError

VISITS = [f"5000000{n}" for n in range(5)]
PATHS = [f"files/p10/p{PATIENT}/s{study}/img-{study}.jpg" for study in VISITS]
CHOICES = {"A": "T1 → T2", "B": "T2 → T3", "C": "T3 → T4", "D": "T4 → T5", "E": "There is no new appearance."}


def record(qid, **fields):
    return {
        "qid": qid,
        "group_type": "TEL",
        "qtype": "single_emergence",
        "images": PATHS,
        "question": "Between which visits does the pleural effusion newly appear?",
        "choices": CHOICES,
        "answer": "B",
        **fields,
    }


RECORDS = [
    record("tel_1"),
    record(
        "gts_2",
        group_type="GTS",
        qtype="multi_entity_interval_summary",
        answer="(E) There is no new appearance.",
    ),
    record("list_3", choices=[f"{letter}. {text}" for letter, text in CHOICES.items()], answer="a"),
    record("dict_4", images={f"T{n}": path for n, path in enumerate(PATHS, start=1)}),
    record("same_5", images=[PATHS[0], PATHS[0], *PATHS[2:]]),
    record("four_6", images=PATHS[:4]),
    record("wrong_7", answer="F"),
    record("other_8", images=[*PATHS[:4], "files/p10/p10000002/s50000009/x.jpg"]),
    record("gone_9", images=[*PATHS[:4], f"files/p10/p{PATIENT}/s50000009/x.jpg"]),
    record("bad_10", images=[*PATHS[:4], "somewhere/x.jpg"]),
    record("out_11", images=["../../p10000001/s50000001/x.jpg", *PATHS[1:]]),
]


def make_folder(tmp_path):
    root = tmp_path / "mi"
    root.mkdir()
    lines = [*(json.dumps(one) for one in RECORDS), "{broken"]
    (root / "micxr_test.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for study in VISITS:
        write_mimic_image(tmp_path / "mimic", study, f"img-{study}")
    return root


folder = pytest.fixture(make_folder, name="folder")


def test_questions_become_choices_with_five_images(folder, tmp_path):
    cases, _ = read_cases("mi-cxr", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert list(cases) == ["mi-cxr-tel_1", "mi-cxr-gts_2", "mi-cxr-list_3", "mi-cxr-dict_4", "mi-cxr-same_5"]
    case = cases["mi-cxr-tel_1"]
    step = case.steps[0]
    assert [view.panels[0].image for view in case.views] == PATHS
    assert step.shows == ("v1", "v2", "v3", "v4", "v5")
    assert (step.key.options, step.multiple, len(step.options)) == (("B",), False, 5)
    assert step.question.splitlines() == [
        "Between which visits does the pleural effusion newly appear?",
        "A. T1 → T2",
        "B. T2 → T3",
        "C. T3 → T4",
        "D. T4 → T5",
        "E. There is no new appearance.",
    ]
    assert step.context.endswith("in order of time: T1, T2, T3, T4 and T5.")
    assert (case.patient, case.study, case.target, case.path) == (
        PATIENT,
        VISITS[-1],
        "single_emergence",
        "TEL",
    )
    assert [cases[f"mi-cxr-{name}"].steps[0].key.options for name in ("gts_2", "list_3", "dict_4")] == [
        ("E",),
        ("A",),
        ("B",),
    ]
    assert [view.panels[0].image for view in cases["mi-cxr-dict_4"].views] == PATHS
    # One image at two visits is one file in two views.
    assert len(cases["mi-cxr-same_5"].images) == 4
    assert len(cases["mi-cxr-same_5"].views) == 5


def test_what_is_wrong_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read_cases("mi-cxr", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert [(item.field, item.kind) for item in imported.skipped] == [
        ("images", "visits"),
        ("answer", "answer"),
        ("images", "patients"),
        ("image", "image missing"),
        ("image", "id"),
        ("image", "image"),
        ("record", "json"),
    ]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"micxr_test\.jsonl: missing"):
        list(SOURCES["mi-cxr"].read(tmp_path))


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    rows = run_through("mi-cxr", folder, tmp_path, "--images", tmp_path / "mimic")
    assert rows["oracle"]["correct"].to_list() == [True] * 5

"""CXReasonBench: chains over several stages and rounds, options in the text of the question."""

import pytest
from tests.sources.question_sets import (
    PATIENT,
    STUDY,
    read_cases,
    run_through,
    write_image,
    write_json,
    write_mimic_image,
)

from carina.sources import SOURCES
from carina.sources._record import SourceError
from carina.sources.cxreasonbench import read_options

NEW = "If none of the options is right, select 'Need new options', and additional options will be provided."
CRITERIA = [
    "What criterion was used? Options: (a) By counting ribs. (b) By the angle of the carina., (c) Need new options. "
    + NEW,
    "What criterion was used? Options: (a) By the ratio (CTR). It is a ratio., (b) By the hilum., "
    "(c) None of the above. If none applies, explain.",
]
DRAWN = "Select all images that the criterion needs. "
MASKS = [
    f"/{task}/{part}/img-1.png"
    for task, part in (("cardiomegaly", "heart"), ("cardiomegaly", "lung"), ("rotation", "clavicle"))
]


def write_chain(root, task, name, *, decision="(a) Yes", **changed):
    stages = {
        "init/basic": {
            "question": "Does this patient have cardiomegaly? Options: (a) Yes, (b) No, (c) I don't know",
            "answer": decision,
            "img_path": [f"p10/p{PATIENT}/s{STUDY}/img-1.jpg"],
            "measured_value": 0.61,
        },
        "stage1/two-round": {
            "question": CRITERIA,
            "answer": ["(c) Need new options", "(a) By the ratio (CTR). It is a ratio."],
        },
        "stage2/basic": {
            "question": [
                f"{DRAWN}Options: (a) 1st image, (b) 2nd image, (c) 3rd image, (d) None of the above"
            ],
            "answer": ["(a) 1st image, (b) 2nd image"],
            "img_path": [MASKS],
        },
        "stage3/basic": {
            "question": "Round the ratio. Options: (a) [0.45 - 0.5], (b) [0.6 - 0.65], Choose only one.",
            "answer": "(b) [0.6 - 0.65]",
        },
        "stage4/basic": {
            "question": "Does this patient have cardiomegaly? Options: (a) Yes, (b) No Also, report the ratio.",
            "answer": decision,
        },
    }
    for stage, record in (stages | changed).items():
        if record is not None:
            write_json(root / "qa" / task / "path1" / stage / f"{name}.json", record)


def make_folder(tmp_path):
    root = tmp_path / "data" / "CXReasonBench"
    names = ["img-1", "img-2", "img-3", "img-4", "img-5", "../../img-1", "*"]
    write_json(root / "dx_by_dicoms.json", {"cardiomegaly": names, "rotation": ["img-6"]})
    write_chain(root, "cardiomegaly", "img-1")
    write_chain(root, "cardiomegaly", "img-2", decision="(a) Yes, (b) No")
    write_chain(root, "cardiomegaly", "img-3", **{"stage3/basic": None})
    write_chain(root, "cardiomegaly", "img-4", **{"stage1/basic": {"question": "Why?", "answer": "So."}})
    write_chain(
        root,
        "cardiomegaly",
        "img-5",
        **{"stage2/basic": {"question": ["Which?"], "answer": ["(a) x"], "img_path": [["/none.png"]]}},
    )
    refined = {"question": "Do you adopt it? Options: (a) Yes (b) No", "answer": "(a) Yes"}
    write_chain(root, "rotation", "img-6", decision="(b) No", **{"stage1.5/basic": refined})
    for mask in MASKS:
        write_image(root / "segmask_bodypart" / mask.lstrip("/"), mode="RGB")
    write_mimic_image(tmp_path / "data" / "mimic", STUDY, "img-1")
    return root


folder = pytest.fixture(make_folder, name="folder")


def read(folder, out):
    data = folder.parent
    return read_cases("cxreasonbench", folder, out, images=data, options={"mimic": data / "mimic"})


def test_a_chain_becomes_a_case(folder, tmp_path):
    cases, _ = read(folder, tmp_path / "bench")
    assert list(cases) == ["cxreasonbench-cardiomegaly-img-1", "cxreasonbench-rotation-img-6"]
    case = cases["cxreasonbench-cardiomegaly-img-1"]
    assert (case.protocol, case.target, case.patient, case.study) == (
        "cxreasonbench",
        "cardiomegaly",
        PATIENT,
        STUDY,
    )
    chain = [
        (step.id, step.stage, step.key.options, step.multiple, step.shows, step.depends_on)
        for step in case.steps
    ]
    assert chain == [
        ("1.1", 1, ("a",), False, ("v1",), ()),
        ("2.1", 2, ("c",), False, (), ("1.1",)),
        ("2.2", 2, ("a",), False, (), ("2.1",)),
        ("4.1", 4, ("a", "b"), True, ("v2", "v3", "v4"), ("2.2",)),
        ("5.1", 5, ("b",), False, (), ("4.1",)),
        ("6.1", 6, ("a",), False, (), ("5.1",)),
    ]
    assert [[option.text for option in step.options] for step in case.steps] == [
        ["Yes", "No", "I don't know"],
        ["By counting ribs", "By the angle of the carina", "Need new options"],
        ["By the ratio (CTR). It is a ratio", "By the hilum", "None of the above"],
        ["1st image", "2nd image", "3rd image", "None of the above"],
        ["[0.45 - 0.5]", "[0.6 - 0.65]"],
        ["Yes", "No"],
    ]
    assert [(image.key, image.finished) for image in case.images] == [
        (f"mimic/files/p10/p{PATIENT}/s{STUDY}/img-1.jpg", False),
        *((f"CXReasonBench/segmask_bodypart{mask}", True) for mask in MASKS),
    ]
    assert [step.stage for step in cases["cxreasonbench-rotation-img-6"].steps] == [1, 2, 2, 3, 4, 5, 6]


def test_one_question_may_have_a_list_of_answers(folder, tmp_path):
    drawn = {
        "question": f"{DRAWN}Options: (a) 1st image, (b) 2nd image, (c) 3rd image",
        "answer": ["(a) 1st image", "(c) 3rd image"],
        "img_path": MASKS,
    }
    write_chain(folder, "rotation", "img-6", **{"stage2/basic": drawn})
    cases, _ = read(folder, tmp_path / "bench")
    (step,) = (step for step in cases["cxreasonbench-rotation-img-6"].steps if step.stage == 4)
    assert (step.key.options, step.multiple) == (("a", "c"), True)


def test_what_is_wrong_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read(folder, tmp_path / "bench")
    assert [(item.place.rpartition(": ")[2], item.field, item.kind) for item in imported.skipped] == [
        ("img-2", "answer", "either accepted"),
        ("img-3", "stage3", "file missing"),
        ("img-4", "stage1", "file"),
        ("img-5", "image", "image missing"),
        ("../../img-1", "", "id"),
        ("*", "", "id"),
    ]


@pytest.mark.parametrize(
    ("text", "answer", "options", "key"),
    [
        ("Which? Options: (a) Left (b) Right", "(b) Right", ["Left", "Right"], ("b",)),
        (
            "View? Options: (a) PA (Posteroanterior), (b) AP (Anteroposterior) Also, report it.",
            "(a) PA",
            ["PA (Posteroanterior)", "AP (Anteroposterior)"],
            ("a",),
        ),
        ("Ribs? Options: (a) 8, (b) 9, ", "(b) 9", ["8", "9"], ("b",)),
        ("Both sides? Right: (a) 1, (b) 2 Left: (a) 1, (b) 2", "Right: (a), Left: (b)", [], ()),
    ],
    ids=["no commas", "brackets within", "comma at the end", "two lists"],
)
def test_options_are_read_from_the_question(text, answer, options, key):
    question = read_options(text, answer, task="stage3")
    assert [option.text for option in question.options] == options
    assert question.key.options == key
    assert question.is_open == (not options)


def test_folders_must_lie_within_the_folder_of_images(folder):
    reader = SOURCES["cxreasonbench"].read
    with pytest.raises(SourceError, match="--images"):
        list(reader(folder))
    with pytest.raises(SourceError, match="does not lie within"):
        list(reader(folder, images=folder.parent / "mimic"))


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    data = folder.parent
    rows = run_through("cxreasonbench", folder, tmp_path, "--images", data, "--mimic", data / "mimic")
    assert rows["oracle"]["correct"].to_list() == [True] * 13

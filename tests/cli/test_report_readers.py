"""`carina report` shows how readers do against each other beside the scores of models."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cases.building import read_build_report
from carina.cases.facts import BY_PROGRAM
from carina.cli import app
from carina.ground.facts import GroundCaseFacts
from carina.studies import (
    Annotation,
    Assessed,
    Finding,
    Image,
    Provenance,
    Region,
    Study,
    write_png,
    write_studies,
)

HEIGHT, WIDTH = 40, 60
PATIENTS = 8


def box(x, y, w, h):
    return Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)


def study(number, *, readers, shift, automatic=False):
    """Patients with a mass, which A draws at its place and B some pixels further; then patients without."""
    ill = number < PATIENTS
    drawn = tuple(
        Annotation(
            image=f"{number}.png",
            region=box(10 + move, 10, 10, 10),
            drawn="box",
            annotator=reader,
            automatic=automatic,
        )
        for reader, move in zip(readers, (0, shift), strict=False)
    )
    found = Finding(id="f1", name="mass", certainty="present", annotations=drawn, stated_by=readers[:2])
    named = readers if len(readers) > 1 else ()
    return Study(
        id=f"s{number}",
        patient=f"p{number}",
        source="made",
        images=(Image(key=f"{number}.png", view="PA", width=WIDTH, height=HEIGHT),),
        findings=(found if named else Finding(id="f1", name="mass", certainty="present", annotations=drawn),)
        if ill
        else (),
        assessed=Assessed(findings="listed", listed=("mass",), readers=named),
    )


def carina(*arguments):
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    return done


def make(root, readers, automatic=0):
    grey = np.arange(HEIGHT * WIDTH, dtype=np.uint8).reshape(HEIGHT, WIDTH)
    # Half of the patients: B draws the same box; the other half: 5 of 10 columns further.
    studies = [
        study(n, readers=readers, shift=5 * (n % 2), automatic=n < automatic) for n in range(2 * PATIENTS)
    ]
    write_studies(root / "studies", studies, Provenance(command="made", image_root="../images"))
    for n in range(2 * PATIENTS):
        (root / "images").mkdir(exist_ok=True)
        write_png(root / "images" / f"{n}.png", grey)
    built = carina("build", "ground", root / "studies", "-o", root / "bench", "--workers", 1)
    carina("run", root / "bench", "--model", "builtin/random", "-o", root / "runs/random")
    carina(
        "explain",
        root / "bench",
        "--model",
        "builtin/asymmetry",
        "-o",
        root / "maps/asymmetry",
        "--workers",
        1,
    )
    carina("report", root / "runs", root / "maps", "-o", root / "report")
    return built


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    root = tmp_path_factory.mktemp("several")
    return root, make(root, ("A", "B", "C"))


def rows(path, **wanted):
    with path.open(newline="") as file:
        return [
            row for row in csv.DictReader(file) if all(row[name] == value for name, value in wanted.items())
        ]


def test_maps_are_shown_beside_the_readers(several):
    root, _ = several
    shown = rows(root / "report/tables/ground-readers.csv", level="all", average="micro")
    by_metric = {row["metric"].partition(".")[0]: row for row in shown}
    # Half of the pairs share everything, half share 50 of 150 pixels, which are 50 of the 100 of each reader. C looked
    # and drew nothing: 0 of one reader in three, and one half of the area under the curve.
    expected = {
        "hit": (2 / 3) * (1 + 1 / 2) / 2,
        "iou": (2 / 3) * (1 + 1 / 3) / 2,
        "dice": (2 / 3) * (1 + 1 / 2) / 2,
        "auroc": (2 / 3) * (1 + (1 / 2 + 1 - 50 / 2300) / 2) / 2 + (1 / 3) * (1 / 2),
    }
    for metric, value in expected.items():
        row = by_metric[metric]
        assert float(row["value"]) == pytest.approx(value)
        assert (row["n"], row["patients"]) == (str(PATIENTS), str(PATIENTS))
        assert float(row["low"]) < value < float(row["high"])
    page = (root / "report/ground.html").read_text()
    assert "Human ceiling" in page
    assert "each against the others" in page


def test_answers_are_shown_beside_the_readers(several):
    root, built = several
    shown = {row["metric"]: row for row in rows(root / "report/tables/readers.csv", name="")}
    # Two of the three readers drew, as above; C's missing box counts as 0.
    boxes = (2 / 3) * (1 + 1 / 3) / 2
    assert float(shown["mean IoU of the best pairs of boxes"]["value"]) == pytest.approx(boxes)
    # Where the mass is absent all three agree; where it is present, C is against two, and A and B have one each for
    # and against them, which is one half.
    presence = shown["agrees with most of the other readers on presence"]
    assert (float(presence["value"]), presence["n"]) == (
        pytest.approx((1 + (1 / 2 + 1 / 2 + 0) / 3) / 2),
        str(2 * PATIENTS),
    )
    # The tidy table has the same beside each model, where it says of readers what accuracy says of models: a reader's
    # box is right where it shares half with the others'. That is so of A and B where they drew the same.
    ceilings = {
        row["stage_name"]: row["human_ceiling"]
        for row in rows(root / "report/tables/results.csv", run="random", label="builtin/random")
    }
    assert float(ceilings["Presence"]) == float(presence["value"])
    assert float(ceilings["Localisation"]) == pytest.approx((2 / 3) * (1 + 0) / 2)
    assert ceilings["All steps"] == ceilings["Mean over stages"] == ""
    of_maps = rows(root / "report/tables/results.csv", run="asymmetry", stage_name="Pixel AUROC")
    expected = (2 / 3) * (1 + (1 / 2 + 1 - 50 / 2300) / 2) / 2 + (1 / 3) * (1 / 2)
    assert [float(row["human_ceiling"]) for row in of_maps] == pytest.approx([expected])
    assert "Human ceiling: readers against readers" in (root / "report/report.html").read_text()
    (agreement,) = read_build_report(open_benchmark(root / "bench")).presence
    assert (agreement.target, agreement.images, agreement.patients) == ("mass", 16, 16)
    # Of 16 x 3 pairs, 8 x 2 differ.
    assert agreement.agreement == pytest.approx(32 / 48)
    # 48 labels, 16 of them "present"; each of 8 images has a disagreement of (9 - 5) / 2.
    assert agreement.alpha == pytest.approx(1 - 47 * 16 / (48**2 - 16**2 - 32**2))
    assert (
        "mass: readers agree on presence in 67% of pairs, Krippendorff's alpha 0.27 (16 studies)"
        in built.stderr
    )


def test_two_images_on_which_all_agree_and_two_on_which_one_reader_sees_nothing(tmp_path):
    readers = ("A", "B", "C")

    def study_of(number, drew):
        drawn = tuple(
            Annotation(image="a.png", region=box(10, 10, 10, 10), drawn="box", annotator=reader)
            for reader in drew
        )
        found = Finding(id="f1", name="mass", certainty="present", annotations=drawn, stated_by=tuple(drew))
        return Study(
            id=f"s{number}",
            patient=f"p{number}",
            source="made",
            images=(Image(key="a.png", view="PA", width=WIDTH, height=HEIGHT),),
            findings=(found,),
            assessed=Assessed(findings="listed", listed=("mass",), readers=readers),
        )

    studies = [study_of(number, drew) for number, drew in enumerate(("ABC", "ABC", "AB", "AB"))]
    write_studies(tmp_path / "studies", studies, Provenance(command="made", image_root="."))
    write_png(tmp_path / "studies/a.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    for rule in ("union", "consensus"):
        root = tmp_path / rule
        carina(
            "build", "ground", tmp_path / "studies", "-o", root / "bench", "--readers", rule, "--workers", 1
        )
        carina("run", root / "bench", "--model", "builtin/random", "-o", root / "runs/random")
        carina("report", root / "runs", "-o", root / "report")
        shown = {row["metric"]: row for row in rows(root / "report/tables/readers.csv", name="")}
        # All agree: 1 of each reader. One dissents: A and B each have one for and one against them, C has two against.
        presence = (1 + 1 + 2 * (1 / 2 + 1 / 2 + 0) / 3) / 4
        # A and B drew the same box, and C none.
        drawn = (1 + 1 + 2 * (1 + 1 + 0) / 3) / 4
        for metric, value in (
            ("agrees with most of the other readers on presence", presence),
            ("mean IoU of the best pairs of boxes", drawn),
            ("IoU", drawn),
        ):
            assert (float(shown[metric]["value"]), shown[metric]["n"]) == (pytest.approx(value), "4")


def test_one_reader_shows_nothing(tmp_path):
    make(tmp_path, ("A",))
    assert not (tmp_path / "report/tables/ground-readers.csv").exists()
    assert "A program, and no person, drew" not in (tmp_path / "report/ground.html").read_text()


def test_regions_by_a_program_are_not_called_those_of_readers(tmp_path):
    make(tmp_path, ("a segmenter",), automatic=3)
    page = (tmp_path / "report/ground.html").read_text()
    assert "A program, and no person, drew 3 of the 8 regions" in page
    facts = [GroundCaseFacts.of(case).drawn_by for case in open_benchmark(tmp_path / "bench")]
    assert facts.count(BY_PROGRAM) == 3
    assert not (tmp_path / "report/tables/readers.csv").exists()
    assert "Human ceiling" not in (tmp_path / "report/ground.html").read_text()
    assert "Human ceiling" not in (tmp_path / "report/report.html").read_text()
    assert read_build_report(open_benchmark(tmp_path / "bench")).presence == ()

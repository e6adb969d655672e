"""Masks by a segmenter: what it is asked, what is taken, and that nobody takes them for reviewed ones."""

import subprocess
import sys

import numpy as np
import pytest
from tests.percept import painted
from typer.testing import CliRunner

from carina.cases import NoCasesError, open_benchmark
from carina.cli import app
from carina.percept import analyse_lesion, build_percept
from carina.percept.facts import PerceptCaseFacts
from carina.percept.records import LesionAnalysis, Skipped
from carina.percept.rules import Rules
from carina.percept.truth import SegmenterTruth, grey_reader
from carina.studies.region import Region

RULES = Rules()


def right(_image, _prompts):
    """Logits of a segmenter that finds the lesion."""
    return np.where(painted.lesion_mask(), 3.0, -3.0)


def nothing(_image, _prompts):
    return np.full((painted.HEIGHT, painted.WIDTH), -1.0)


def outcome(study, segmenter, **more):
    source = SegmenterTruth(segmenter, lambda _image: painted.pixels())
    return analyse_lesion(study, "consolidation", seed=3, rules=RULES, truth_of=source, **more)


@pytest.fixture(scope="module")
def tiny_sam(tmp_path_factory):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    from tests.models import tiny  # needs torch

    return tiny.save_tiny("sam", tmp_path_factory.mktemp("weights") / "tiny-sam")


def test_a_box_can_be_used_only_with_a_segmenter():
    study = painted.study_of(drawn="box")
    alone = analyse_lesion(study, "consolidation", seed=3, rules=RULES)
    assert (type(alone), alone.reason) == (Skipped, "drawn as a box")
    segmenter = painted.Scripted(right)
    made = outcome(study, segmenter)
    assert isinstance(made, LesionAnalysis)
    np.testing.assert_array_equal(made.truth.to_mask(), painted.lesion_mask())
    ((image, prompts),) = segmenter.asked
    # The ellipse spans 150 +- 70 and 250 +- 90, both ends included.
    assert (prompts.box, prompts.points, prompts.mask) == ((80, 160, 221, 341), (), None)
    np.testing.assert_array_equal(image, painted.pixels())


def test_a_mask_is_asked_for_by_its_box_and_an_inner_point():
    segmenter = painted.Scripted(right)
    assert isinstance(outcome(painted.study_of(), segmenter), LesionAnalysis)
    ((_, prompts),) = segmenter.asked
    assert prompts.box == (80, 160, 221, 341)
    (point,) = prompts.points
    assert point.inside
    # The deepest pixel of an ellipse is its centre, give or take the grid; its own centre is half a pixel on.
    assert point.x == pytest.approx(150.5, abs=1)
    assert point.y == pytest.approx(250.5, abs=15)


def test_every_piece_is_prompted_separately_and_specks_are_ignored():
    two = painted.ellipse((120, 150), (40, 50)) | painted.ellipse((150, 370), (45, 60))
    speck = two | painted.ellipse((170, 255), (3, 3))

    def piece(_image, prompts):
        x, y = prompts.points[0].x, prompts.points[0].y
        pieces = Region.from_mask(two).components()
        return np.where(next(p for p in pieces if p.contains(x, y)).to_mask(), 1.0, -1.0)

    segmenter = painted.Scripted(piece)
    truth = SegmenterTruth(segmenter, lambda _image: painted.pixels())
    study = painted.study_of(regions=(Region.from_mask(speck),))
    from carina.percept.lesions import LESIONS

    made = truth(study, study.images[0], LESIONS["consolidation"])
    assert len(segmenter.asked) == 2
    np.testing.assert_array_equal(made.mask, two)
    assert not made.reviewed


@pytest.mark.parametrize("drawn", ["box", "mask"])
def test_a_segmenter_that_outlines_something_else_makes_the_lesion_ineligible(drawn):
    def elsewhere(_image, _prompts):
        return np.where(painted.ellipse((345, 260), (50, 60)), 1.0, -1.0)

    for answer in (elsewhere, nothing):
        made = outcome(painted.study_of(drawn=drawn), painted.Scripted(answer))
        assert made.reason == "segmenter disagrees"
        assert made.detail.startswith(f"its answer overlaps the drawn {drawn} by 0.00")


def test_an_annotator_of_masks_is_asked_before_one_of_boxes():
    boxed, masked = painted.study_of(drawn="box", annotators=("a",)), painted.study_of(annotators=("b",))
    import msgspec

    both = boxed.findings[0].annotations + masked.findings[0].annotations
    study = msgspec.structs.replace(
        boxed, findings=(msgspec.structs.replace(boxed.findings[0], annotations=both),)
    )
    assert "drawn by b" in outcome(study, painted.Scripted(right)).provenance


def test_provenance_names_segmenter_and_annotator_and_says_not_reviewed():
    made = outcome(painted.study_of(drawn="box"), painted.Scripted(right))
    assert (made.provenance, made.reviewed) == (
        "segmented by scripted:one (weights 0123456789ab) from box drawn by reader A; not reviewed",
        False,
    )
    assert outcome(painted.study_of(), painted.Scripted(right)).provenance == (
        "segmented by scripted:one (weights 0123456789ab) from box and inner point of each piece of the mask "
        "drawn by reader A; not reviewed"
    )
    own = analyse_lesion(painted.study_of(), "consolidation", seed=3, rules=RULES)
    assert (own.provenance, own.reviewed) == ("drawn by reader A", True)


@pytest.mark.parametrize("path", ["RF", "RR"])
def test_a_case_stores_the_provenance_of_its_mask(path):
    from carina.percept.assemble import make_lesion_case
    from carina.percept.select import assign_key_positions, choose_masks

    for made, reviewed in (
        (outcome(painted.study_of(), painted.Scripted(right)), "no"),
        (analyse_lesion(painted.study_of(), "consolidation", seed=3, rules=RULES), "yes"),
    ):
        regions = min(made.attributes.locations)
        due = assign_key_positions("consolidation", path, 0, seed=3)
        (chosen,) = choose_masks([made], seed=3)
        case = make_lesion_case(chosen, path, right_regions=regions, seed=3, rules=RULES, key_position=due)
        facts = PerceptCaseFacts.of(case)
        truth, shown = (facts.sources[facts.region(role)] for role in ("truth", "shown"))
        assert truth.reviewed == reviewed
        assert truth.provenance == made.provenance
        assert shown.provenance == (
            "deformed from the redrawn truth by signed-distance warp" if path == "RR" else "truth, redrawn"
        )


def test_an_image_that_cannot_be_read_is_a_reason_without_a_path(tmp_path):
    studies = painted.write_set(tmp_path, painted.study_of())
    (tmp_path / "images/s0.png").unlink()
    source = SegmenterTruth(painted.Scripted(right), grey_reader(studies))
    made = analyse_lesion(studies["s0"], "consolidation", seed=3, rules=RULES, truth_of=source)
    assert (made.reason, made.detail) == ("image cannot be read", "'images/s0.png'")


def test_random_weights_give_an_analysis_or_a_reason(tiny_sam, tmp_path):
    from carina import models

    studies = painted.write_set(tmp_path, painted.study_of(drawn="box"))
    source = SegmenterTruth(models.open(f"sam:{tiny_sam}", needs="segments"), grey_reader(studies))
    made = [
        analyse_lesion(studies["s0"], "consolidation", seed=3, rules=RULES, truth_of=source) for _ in range(2)
    ]
    assert made[0] == made[1]
    assert isinstance(made[0], LesionAnalysis) or made[0].reason


# ---- building ----


def test_a_build_records_the_models_without_their_paths(tiny_sam, tmp_path):
    studies = painted.write_set(tmp_path / "studies", *(painted.study_of(number=n) for n in range(2)))
    options = {"per_cell": 1, "targets": ("consolidation",), "workers": 1}
    plain = build_percept(studies, tmp_path / "plain", **options).manifest
    named = f"sam:{tiny_sam}"
    try:
        built = build_percept(studies, tmp_path / "bench", **options, segmenter=named, deformer=named)
    except NoCasesError as error:  # random weights may outline nothing that can be used
        built = error.benchmark
    stated = built.manifest.options
    assert stated["segmenter"] == stated["deformer"]
    assert stated["segmenter"]["name"] == "sam:tiny-sam"
    assert len(stated["segmenter"]["weights"]) == len(stated["segmenter"]["settings"]) == 64
    assert plain.options["segmenter"] is None
    assert plain.fingerprint != built.manifest.fingerprint
    assert built.manifest.command.endswith("--segmenter sam:tiny-sam --deformer sam:tiny-sam")
    assert str(tmp_path) not in (tmp_path / "bench" / "bench.json").read_text()
    assert {case.path for case in open_benchmark(tmp_path / "plain")} <= {"RF", "RR"}


@pytest.mark.parametrize("option", ["--segmenter", "--deformer"])
def test_unknown_models_are_refused(option, tmp_path):
    painted.write_set(tmp_path / "studies", painted.study_of())
    command = ["build", "percept", str(tmp_path / "studies"), "-o", str(tmp_path / "bench")]
    for named, words in (
        ("unet:x", "Error: model 'unet:x': unknown. Models that outline regions: sam:PATH."),
        (f"sam:{tmp_path}/none", "none: no such folder"),
    ):
        result = CliRunner().invoke(app, [*command, option, named])
        assert result.exit_code == 2
        assert words in result.stderr
    assert not (tmp_path / "bench").exists()


def test_torch_is_imported_only_for_a_segmenter(tmp_path):
    painted.write_set(tmp_path / "studies", painted.study_of())
    code = (
        "import sys; from carina.cli import app\n"
        "try: app(['build', 'percept', 'studies', '-o', 'bench', '--per-cell', '1', '--workers', '1'])\n"
        "except SystemExit: pass\n"
        "import carina.models, carina.percept\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'transformers'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "bench").exists()

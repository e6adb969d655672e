"""There and back: a bundle through a benchmark, and our own cases through a bundle."""

import json
import tempfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.sources.chexpercept import percept_cases, published

from carina.cases import Views, open_benchmark
from carina.exports import export
from carina.exports.chexpercept.record import list_files, make_key_id, make_record
from carina.sources import import_source
from carina.sources.chexpercept import read_case
from carina.sources.chexpercept.case import Picture
from carina.sources.chexpercept.layout import is_key_field
from carina.store.errors import BenchmarkError, ImageError
from carina.store.files import sha256


@pytest.fixture
def bundle(tmp_path):
    return published.write_bundle(tmp_path / "bundle")


def records(bundle):
    return json.loads((bundle / "chexpercept.json").read_text())


def bring(bundle, out, **more):
    result = import_source("chexpercept", bundle, out, workers=1, **more)
    assert result.skipped == []
    return result.opened()


def export_bundle(bench, out, *, workers=1, **options):
    return export(bench, out, to="chexpercept", options=options, workers=workers)


def names(value):
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


def pictures(bundle):
    return {str(path.relative_to(bundle)): path.read_bytes() for path in bundle.rglob("*.png")}


# ---- a bundle through a benchmark ---------------------------------------------------------------------------------


@pytest.mark.parametrize("copy_images", [False, True])
def test_an_imported_bundle_is_exported_unchanged(bundle, tmp_path, copy_images):
    bench = bring(bundle, tmp_path / "bench", copy_images=copy_images)
    assert bench.ids() == list(records(bundle))
    assert list(bench.check(images=True)) == []
    export_bundle(tmp_path / "bench", tmp_path / "again")
    assert records(tmp_path / "again") == records(bundle)
    assert list(records(tmp_path / "again")) == list(records(bundle))
    assert pictures(tmp_path / "again") == pictures(bundle)


def test_copied_pictures_are_exported_without_the_bundle(bundle, tmp_path):
    bench = bring(bundle, tmp_path / "bench", copy_images=True)
    assert bench.manifest.image_root == "images"
    bundle.rename(tmp_path / "elsewhere")
    assert list(open_benchmark(tmp_path / "bench").check(images=True)) == []


def test_pictures_that_stay_are_found_relative_to_the_benchmark(bundle, tmp_path):
    bench = bring(bundle, tmp_path / "bench")
    assert bench.manifest.image_root == "../bundle"
    assert not (tmp_path / "bench" / "images").exists()


def test_views_are_the_pictures_of_the_bundle(bundle, tmp_path):
    bench = bring(bundle, tmp_path / "bench")
    case = bench["effusion_s1_positive_0"]
    file = (
        bundle / "chexpercept/effusion_s1_positive_0/contour_qa/contour_revision_qa/option_2_mask_answer.png"
    )
    assert Views(bench).png(case, "v5") == file.read_bytes()
    assert case.image(case.view("v5").panels[0].image).sha256 == sha256(file)


def test_neutral_names_change_the_names_alone(bundle, tmp_path):
    bring(bundle, tmp_path / "bench")
    export_bundle(tmp_path / "bench", tmp_path / "again", neutral_names=True)
    text = (tmp_path / "again" / "chexpercept.json").read_text()
    assert "mask_answer" not in text
    assert "mask_fake" not in text
    assert not [
        path for path in (tmp_path / "again").rglob("*.png") if "answer" in path.name or "fake" in path.name
    ]
    revision = "chexpercept/effusion_s1_positive_0/contour_qa/contour_revision_qa"
    before, after = pictures(bundle), pictures(tmp_path / "again")
    assert after[f"{revision}/option_2.png"] == before[f"{revision}/option_2_mask_answer.png"]
    assert sorted(after.values()) == sorted(before.values())
    expected = records(bundle)
    for record in expected.values():
        block = record.get("contour_qa", {}).get("contour_revision_qa_revision_result", {})
        for number, option in enumerate(block.get("answer_options", []), start=1):
            option["relative_path"] = f"option_{number}.png"
    assert records(tmp_path / "again") == expected


def test_separate_keys_leave_no_key_behind_and_can_be_read_again(bundle, tmp_path):
    bring(bundle, tmp_path / "bench")
    export_bundle(tmp_path / "bench", tmp_path / "apart", keys="separate")
    asked = records(tmp_path / "apart")
    assert not [name for name in names(asked) if is_key_field(name)]
    assert "mask_answer" not in json.dumps(asked)
    assert list(json.loads((tmp_path / "apart" / "keys.json").read_text())) == list(asked)
    again = bring(tmp_path / "apart", tmp_path / "bench2")
    for case in open_benchmark(tmp_path / "bench"):
        other = again[case.id]
        assert (other.path, other.target, other.study) == (case.path, case.target, case.study)
        assert [(s.question, s.options, s.key) for s in other.steps] == [
            (s.question, s.options, s.key) for s in case.steps
        ]


def test_the_manifest_lists_every_file(bundle, tmp_path):
    bring(bundle, tmp_path / "bench")
    manifest = export_bundle(tmp_path / "bench", tmp_path / "again", keys="separate")
    told = json.loads((tmp_path / "again" / "carina.json").read_text())
    assert (told["kind"], told["schema"], told["keys"]) == ("carina/chexpercept", "1.0", "separate")
    # RR has 7 pictures, RF 2, LF 1; with attributes RR has 9 questions, RF 6; without, 5 and 2.
    assert told["counts"]["cases"] == 6
    assert told["counts"]["pictures"] == 7 + 2 + 1 + 7 + 2 + 1
    assert told["counts"]["questions"] == 9 + 6 + 1 + 5 + 2 + 1
    assert told["counts"]["cells"]["effusion/RR"] == 1
    there = {
        str(path.relative_to(tmp_path / "again")): sha256(path)
        for path in (tmp_path / "again").rglob("*")
        if path.is_file() and path.name != "carina.json"
    }
    assert told["files"] == there == manifest.files


def test_a_picture_that_changed_since_is_not_exported(bundle, tmp_path):
    bring(bundle, tmp_path / "bench")
    file = bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png"
    cv2.imwrite(str(file), np.zeros((24, 24), np.uint8))
    with pytest.raises(ImageError, match=r"edema_s3_negative_0/detection_qa/xray\.png: .*SHA-256"):
        export_bundle(tmp_path / "bench", tmp_path / "again")
    assert not (tmp_path / "again").exists()


UNKNOWN = st.dictionaries(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=6),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(blacklist_categories=("Cs",)), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text('ab\u2028\n"', max_size=3), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=3,
)


@settings(max_examples=25)
@given(path=st.sampled_from(["LF", "RF", "RR"]), unknown=UNKNOWN, attributed=st.booleans())
def test_any_unknown_field_is_exported_unchanged(path, unknown, attributed):
    record = {**unknown, **published.record(path, pair_id="x", attributed=attributed)}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        published.write_bundle(root / "bundle", {"edema_x": record})
        bring(root / "bundle", root / "bench")
        export_bundle(root / "bench", root / "again")
        assert records(root / "again") == {"edema_x": record}
        export_bundle(root / "bench", root / "apart", keys="separate")
        assert not [name for name in names(records(root / "apart")) if is_key_field(name)]


# ---- our own cases through a bundle -------------------------------------------------------------------------------


def same_questions(case, other):
    assert [step.id for step in case.steps] == [step.id for step in other.steps]
    for step, again in zip(case.steps, other.steps, strict=True):
        assert (again.question, again.context, again.multiple) == (step.question, step.context, step.multiple)
        assert [option.text for option in again.options] == [option.text for option in step.options]
        assert again.right == step.right
        assert (again.shows, again.stage, again.task, again.score) == (
            step.shows,
            step.stage,
            step.task,
            step.score,
        )
    assert (other.target, other.path, other.study) == (case.target, case.path, case.study)


@pytest.mark.parametrize("keys", ["inline", "separate"])
@pytest.mark.parametrize("side", [None, 48])
def test_built_cases_have_the_same_questions_after_export_and_import(tmp_path, keys, side):
    cases = [
        percept_cases.case("RR", number=1, side=side),
        percept_cases.case("RF", number=2, target="opacity", yes_first=True, side=side),
        percept_cases.case("LF", number=3, target="edema", side=side),
        percept_cases.case("RR", number=4, target="cardiomegaly", right=(), away=(2, 5), key=4, side=side),
        percept_cases.case("RF", number=5, target="cardiomegaly", side=side),
    ]
    bench = open_benchmark(percept_cases.write(tmp_path / "bench", cases))
    assert list(bench.check(images=True)) == []
    export_bundle(tmp_path / "bench", tmp_path / "bundle", keys=keys)
    again = bring(tmp_path / "bundle", tmp_path / "again")
    assert again.ids() == [make_key_id(case) for case in cases]
    views, others = Views(bench), Views(again)
    for case, other in zip(bench, again, strict=True):
        same_questions(case, other)
        for view in case.views:
            np.testing.assert_array_equal(views.array(case, view.id), others.array(other, view.id))


@settings(max_examples=60)
@given(data=st.data())
def test_the_record_of_any_built_case_reads_the_same(data):
    n = data.draw(st.integers(3, 8))
    edits = data.draw(st.lists(st.integers(1, n), unique=True, max_size=3))
    cut = data.draw(st.integers(0, len(edits)))
    case = percept_cases.case(
        data.draw(st.sampled_from(["LF", "RF", "RR"])),
        number=data.draw(st.integers(0, 2**64 - 1)),
        target=data.draw(st.sampled_from(["cardiomegaly", "effusion", "opacity"])),
        points=n,
        right=sorted(edits[:cut]),
        away=sorted(edits[cut:]),
        key=data.draw(st.integers(1, 4)),
        yes_first=data.draw(st.booleans()),
    )
    record = json.loads(json.dumps(make_record(case, lambda _: (96, 96))))
    known = set(list_files(case).values())

    def probe(key):
        assert key in known
        return Picture(key, 96, 96, "0" * 64)

    same_questions(case, read_case(make_key_id(case), record, probe))


def test_the_record_of_a_built_case_field_by_field():
    case = percept_cases.case("RR", right=(1, 4), away=(), key=3)
    record = make_record(case, lambda _: (96, 96))
    assert list(record) == ["detection_qa", "contour_qa", "attribute_extraction_qa", "pair_id", "dicom_id"]
    assert record["detection_qa"] == {
        "question": "Detection, step 1?\nOptions:\n(1) No\n(2) Yes",
        "answer_options": ["No", "Yes"],
        "answer": "Yes",
        "answer_index": 2,
    }
    assert (record["pair_id"], record["dicom_id"]) == ("c-0000000000000001", "s-1")
    contour = record["contour_qa"]
    assert contour["no_deformation"] is False
    assert contour["initial_context"] == "Points are coloured."
    assert contour["contour_eval_qa"]["relative_path"] == "contour_eval_qa/xray_with_mask.png"
    expansion = contour["contour_revision_qa_expansion"]
    assert expansion["answer"] == "blue point, yellow point"
    assert expansion["answer_index"] == [1, 4]
    # Marks lie at (10.5 + 11 n, 80.5 - 9 n), centres of pixels.
    assert expansion["answer_options"][:2] == [
        {"point": [10, 80], "color": "blue"},
        {"point": [21, 71], "color": "red"},
    ]
    assert expansion["answer_options"][-1] == {"point": None, "color": "None"}
    contraction = contour["contour_revision_qa_contraction"]
    assert (contraction["answer"], contraction["answer_index"]) == ("None", [6])
    result = contour["contour_revision_qa_revision_result"]
    assert (result["answer"], result["answer_index"]) == ("3rd mask", 3)
    assert result["answer_options"][1:3] == [
        {"type": "fake", "masks": ["mask_2"], "relative_path": "option_2.png"},
        {"type": "true", "masks": ["mask_3"], "relative_path": "option_3.png"},
    ]
    assert contour["revision_before_masks"] == ["mask_0"]
    assert contour["revision_after_masks"] == contour["true_combination"] == ["mask_3"]
    assert contour["true_masks"] == {"0": ["mask_3"]}
    assert contour["fake_masks"] == {"0": ["mask_1", "mask_2", "mask_4"]}
    assert contour["fake_combinations"] == [["mask_1"], ["mask_2"], ["mask_4"]]
    found = record["attribute_extraction_qa"]
    assert list(found) == ["distribution", "location", "severity/measurement", "comparison"]
    assert found["distribution"]["answer_zones"] == ["right lower zone", "right mid zone"]
    assert found["location"]["answer_zones"] == [
        "right lateral lung & right mid zone",
        "right costophrenic angle",
    ]
    assert (
        found["severity/measurement"]["overlap_ratio"],
        found["severity/measurement"]["selected_lung"],
    ) == (
        0.21,
        "right lung",
    )
    comparison = found["comparison"]
    assert [
        comparison[f"{side}_{what}"] for what in ("size", "has_overlap") for side in ("left", "right")
    ] == [
        2,
        311,
        False,
        True,
    ]


def test_the_blocks_of_a_record_depend_on_the_path():
    assert list(make_record(percept_cases.case("LF"), None)) == ["detection_qa", "pair_id", "dicom_id"]
    good = make_record(percept_cases.case("RF"), None)
    assert good["contour_qa"]["no_deformation"] is True
    assert "contour_revision_qa_expansion" not in good["contour_qa"]
    assert (
        make_record(percept_cases.case("RF", target="cardiomegaly"), None)["attribute_extraction_qa"] is None
    )


def test_names_of_built_cases_reveal_only_the_lesion():
    names = {make_key_id(percept_cases.case(path, target="edema")) for path in ("LF", "RF", "RR")}
    assert names == {"edema_c-0000000000000001"}
    files = sorted(list_files(percept_cases.case("RR")).values())
    assert [Path(file).name for file in files] == [
        "xray_with_mask.png",
        *(f"option_{n}.png" for n in range(1, 5)),
        "xray_with_mask_and_points.png",
        "xray.png",
    ]


def test_points_are_pixels_of_the_picture_that_shows_them():
    case = percept_cases.case("RR", side=48)
    options = make_record(case, lambda _: (48, 48))["contour_qa"]["contour_revision_qa_expansion"][
        "answer_options"
    ]
    assert options[1]["point"] == [10, 35]  # (21.5, 71.5) at half the size


# ---- interrupted, repeated, in the way ----------------------------------------------------------------------------


@pytest.fixture
def rendered(monkeypatch):
    """Views that are rendered, in order; the list `fail_at` holds the numbers of those that are interrupted."""

    class Rendered(list):
        fail_at = ()

    found = Rendered()

    def png(_self, case, view_id):
        if len(found) in found.fail_at:
            found.fail_at = ()
            raise KeyboardInterrupt
        found.append((case.id, view_id))
        grey = np.full((96, 96), len(view_id + case.id) % 256, np.uint8)
        return cv2.imencode(".png", grey)[1].tobytes()

    monkeypatch.setattr(Views, "png", png)
    return found


def test_an_interrupted_export_leaves_no_folder_and_resumes(tmp_path, rendered):
    cases = [percept_cases.case("RR", number=n) for n in (1, 2)]
    bench = percept_cases.write(tmp_path / "bench", cases)
    out = tmp_path / "bundle"
    rendered.fail_at = (9,)
    with pytest.raises(KeyboardInterrupt):
        export_bundle(bench, out)
    assert not out.exists()
    rendered.clear()
    export_bundle(bench, out)
    assert len(rendered) == 14 - 9
    whole = tmp_path / "whole"
    export_bundle(bench, whole)
    assert (whole / "carina.json").read_bytes() == (out / "carina.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench", "bundle", "whole"]
    assert not (out / ".export").exists()


def test_leftovers_of_a_killed_command_do_not_come_along(tmp_path, rendered):
    bench = percept_cases.write(tmp_path / "bench", [percept_cases.case("RR")])
    rendered.fail_at = (3,)
    with pytest.raises(KeyboardInterrupt):
        export_bundle(bench, tmp_path / "bundle")
    (tmp_path / ".bundle.partial" / "chexpercept" / ".xray.png.1.tmp").write_bytes(b"half")
    rendered.clear()
    export_bundle(bench, tmp_path / "bundle")
    assert len(rendered) == 7 - 3
    assert not list((tmp_path / "bundle").rglob(".*"))


def test_an_unfinished_export_with_other_options_is_started_again(tmp_path, rendered):
    bench = percept_cases.write(tmp_path / "bench", [percept_cases.case("RR")])
    rendered.fail_at = (3,)
    with pytest.raises(KeyboardInterrupt):
        export_bundle(bench, tmp_path / "bundle")
    rendered.clear()
    export_bundle(bench, tmp_path / "bundle", keys="separate")
    assert len(rendered) == 7


def test_a_finished_export_is_kept_and_another_one_is_refused(tmp_path):
    bench = percept_cases.write(tmp_path / "bench", [percept_cases.case("LF")])
    first = export_bundle(bench, tmp_path / "bundle")
    before = (tmp_path / "bundle" / "carina.json").stat().st_mtime_ns
    assert export_bundle(bench, tmp_path / "bundle") == first
    assert (tmp_path / "bundle" / "carina.json").stat().st_mtime_ns == before
    with pytest.raises(BenchmarkError, match="bundle: "):
        export_bundle(bench, tmp_path / "bundle", keys="separate")
    (tmp_path / "empty").mkdir()
    export_bundle(bench, tmp_path / "empty")
    assert (tmp_path / "empty" / "chexpercept.json").is_file()


def test_workers_write_the_same_bytes(tmp_path):
    bench = percept_cases.write(tmp_path / "bench", [percept_cases.case("RR", number=n) for n in range(1, 4)])
    one = export_bundle(bench, tmp_path / "one")
    two = export_bundle(bench, tmp_path / "two", workers=2)
    assert one.manifest == two.manifest
    assert pictures(tmp_path / "one") == pictures(tmp_path / "two")


def test_cases_of_another_protocol_are_refused(tmp_path):
    bench = percept_cases.write(tmp_path / "bench", [replace(percept_cases.case("LF"), protocol="trek")])
    with pytest.raises(BenchmarkError, match=r"bench: .*\btrek\b.*\bpercept\b"):
        export_bundle(bench, tmp_path / "bundle")


def test_a_case_that_the_layout_cannot_hold_is_named(tmp_path):
    case = percept_cases.case("RR")
    other = replace(case.step("3c"), question="Which?\nOptions:\n(1) A\n(2) B\n(3) C\n(4) D")
    steps = tuple(other if step.id == "3c" else step for step in case.steps)
    bench = percept_cases.write(tmp_path / "bench", [replace(case, steps=steps)])
    with pytest.raises(BenchmarkError, match=r"case 'c-0000000000000001': .*question: .*'A'"):
        export_bundle(bench, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()

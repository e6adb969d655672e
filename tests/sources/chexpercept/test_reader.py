"""A bundle whose records are not all sound: the good are brought, the others told."""

import csv
import json
import struct
import zlib

import pytest

from carina.cases import open_benchmark
from carina.sources import SourceError, import_source
from carina.store.errors import CarinaError

XRAY = "chexpercept/edema_s3_negative_0/detection_qa/xray.png"
OPTION = "chexpercept/effusion_s1_positive_0/contour_qa/contour_revision_qa/option_3_mask_fake.png"


def bring(bundle, out, *, patients=None, workers=1, **more):
    options = {"patients": patients} if patients else None
    return import_source("chexpercept", bundle, out, options=options, workers=workers, **more)


def manifest(out):
    return open_benchmark(out).manifest


def bomb(side):
    """The head of a PNG that claims so many pixels a side."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")):
        content += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return content


def test_cases_are_counted_by_lesion_and_path(bundle, tmp_path):
    result = bring(bundle, tmp_path / "bench")
    assert result.counts.records == 6
    assert result.counts.cells == {
        "effusion/RR": 1,
        "opacity/RF": 1,
        "edema/LF": 1,
        "cardiomegaly/RR": 1,
        "cardiomegaly/RF": 1,
        "ground glass/LF": 1,
    }
    assert manifest(tmp_path / "bench").counts.cases == 6
    assert (tmp_path / "bench" / "skipped.csv").read_text() == "study,target,stage,reason,detail\n"
    (source,) = manifest(tmp_path / "bench").sources
    assert source.name == "chexpercept"


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        (XRAY, None, "detection_qa: "),
        (OPTION, None, "answer_options[2].relative_path: "),
        (OPTION, b"", "the file is empty"),
        (OPTION, b"GIF89a", "unknown image format"),
        (OPTION, bomb(50_000), "50000 x 50000 pixels, more than the limit"),
        (OPTION, bomb(40), "damaged or cut short"),
    ],
    ids=("x-ray", "missing", "empty", "kind", "bomb", "cut"),
)
def test_a_picture_that_is_missing_or_broken_costs_its_record_alone(
    bundle, tmp_path, file, content, sentence
):
    skipped = file.split("/")[1]
    path = bundle / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    result = bring(bundle, tmp_path / "bench")
    (found,) = result.skipped
    assert (found.place, found.kind) == (f"{bundle / 'chexpercept.json'}: {skipped}", "image")
    assert found.message.startswith(f"{bundle / 'chexpercept.json'}: {skipped}: ")
    assert sentence in found.message
    assert str(path) in found.message
    assert len(open_benchmark(tmp_path / "bench")) == 5
    with (tmp_path / "bench" / "skipped.csv").open(newline="") as table:
        (row,) = csv.DictReader(table)
    assert row["reason"] == "image"
    assert row["detail"] == found.message


def test_a_link_out_of_the_bundle_is_not_followed(bundle, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes((bundle / XRAY).read_bytes())
    (bundle / XRAY).unlink()
    (bundle / XRAY).symlink_to(secret)
    (found,) = bring(bundle, tmp_path / "bench").skipped
    assert "leads out of the image root" in found.message


def test_records_with_repeated_names_are_skipped(bundle, tmp_path):
    text = (bundle / "chexpercept.json").read_text()
    records = json.loads(text)
    double = f'"edema_s3_negative_0": {json.dumps(records["edema_s3_negative_0"])}'
    inner = text.replace('"pair_id": "s2_positive_1"', '"pair_id": "s2_positive_1", "pair_id": "other"')
    (bundle / "chexpercept.json").write_text(f"{inner.rstrip()[:-1]}, {double}}}")
    result = bring(bundle, tmp_path / "bench")
    records = bundle / "chexpercept.json"
    assert [(item.place, item.kind) for item in result.skipped] == [
        (f"{records}: opacity_s2_positive_1", "json"),
        (f"{records}: edema_s3_negative_0", "json"),
        (f"{records}: edema_s3_negative_0", "json"),
    ]
    assert "the name 'pair_id' is given twice" in result.skipped[0].message
    assert "several records have this key_id" in result.skipped[1].message


def test_stop_ends_at_the_first_fault(bundle, tmp_path):
    (bundle / XRAY).unlink()
    with pytest.raises(SourceError, match=r"chexpercept.json: edema_s3_negative_0: detection_qa: "):
        bring(bundle, tmp_path / "bench", on_error="stop")
    assert not (tmp_path / "bench" / "bench.json").exists()


def test_nothing_is_written_where_nothing_can_be_used(bundle, tmp_path):
    for path in bundle.rglob("xray.png"):
        path.unlink()
    result = bring(bundle, tmp_path / "bench")
    assert result.is_empty
    assert len(result.skipped) == 6
    assert not (tmp_path / "bench").exists()


def test_a_limit_counts_cases_and_reads_no_further(bundle, tmp_path):
    first = "effusion_s1_positive_0"
    (bundle / f"chexpercept/{first}/detection_qa/xray.png").unlink()
    (bundle / "chexpercept/ground glass_s6_negative_2/detection_qa/xray.png").unlink()
    result = bring(bundle, tmp_path / "bench", limit=2)
    assert open_benchmark(tmp_path / "bench").ids() == ["opacity_s2_positive_1", "edema_s3_negative_0"]
    assert [item.place for item in result.skipped] == [f"{bundle / 'chexpercept.json'}: {first}"]


def test_patients_come_from_a_table(bundle, tmp_path):
    table = tmp_path / "patients.csv"
    table.write_text("dicom_id,patient\nd-1,p1\nd-2,p1\nd-3,p2\n")
    result = bring(bundle, tmp_path / "bench", patients=table)
    assert result.counts.without_patient == 3
    assert [case.patient for case in open_benchmark(tmp_path / "bench")] == [
        "p1",
        "p1",
        "p2",
        None,
        None,
        None,
    ]
    assert manifest(tmp_path / "bench").counts.patients == 2


def test_workers_change_nothing(bundle, tmp_path):
    (bundle / OPTION).unlink()
    one = bring(bundle, tmp_path / "one")
    two = bring(bundle, tmp_path / "two", workers=2)
    assert one.skipped == two.skipped
    assert manifest(tmp_path / "one").parts == manifest(tmp_path / "two").parts


def test_a_file_that_is_no_bundle_writes_nothing(tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "chexpercept.json").write_text("{}")
    with pytest.raises(SourceError, match=r"chexpercept\.json: "):
        bring(tmp_path / "bundle", tmp_path / "bench")
    (tmp_path / "bundle" / "chexpercept.json").write_text('{"a": {}')
    with pytest.raises(SourceError, match=r"chexpercept\.json: .*record 'a', at byte 8"):
        bring(tmp_path / "bundle", tmp_path / "bench")
    assert not (tmp_path / "bench").exists()


def test_keys_that_do_not_fit_cost_their_record_alone(bundle, tmp_path):
    (bundle / "keys.json").write_text('{"edema_s3_negative_0": {"detection_qa": {"answer": "Yes"}}}')
    (found,) = bring(bundle, tmp_path / "bench").skipped
    assert "detection_qa.answer: differs between chexpercept.json and keys.json" in found.message


def test_another_import_in_the_same_place_is_refused(bundle, tmp_path):
    bring(bundle, tmp_path / "bench")
    with pytest.raises(CarinaError, match=r"bench: .*\b6 cases\b.* limit None, not 2"):
        bring(bundle, tmp_path / "bench", limit=2)

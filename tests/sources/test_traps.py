"""The traps that every reader of published data must meet, and the tests that meet them.

The list is that of the specification of sources. A test that is renamed or deleted is missed here; traps that no other
test covers as such are covered below.
"""

from importlib import import_module

import pytest

from carina.sources import RecordError
from carina.sources._json import decode, read_entries
from carina.sources._mimic_images import read_mimic_id

TRAPS = {
    "1 versioned names lag the release": ("mimic_cxr_jpg.test_every_field_of_a_study",),
    "2 words for splits": ("values.test_splits", "values.test_a_word_that_is_no_split_is_refused"),
    "3 the split of annotations is not that of images": (
        "joining.test_phrases_and_boxes_join_labels_and_report",
    ),
    "4 ids with and without prefix, folder and ending": (
        "traps.test_ids_are_read_with_and_without_their_letter",
        "chexmask.test_the_column_of_the_id_differs",
        "ms_cxr_t.test_rows_that_cannot_be_used",
        "chest_imagenome.test_gold_is_by_readers",
    ),
    "5 numbers that lost leading zeros": ("mimic_cxr_jpg.test_studies_are_ordered_by_date_and_time_of_day",),
    "6 None, nan, NaN, blank, -1": (
        "tables.test_words_for_nothing_are_blank",
        "rexgradient.test_every_field_of_a_study",
        "siim.test_every_field_of_a_study",
    ),
    "7 JSON lines called .json, aligned arrays, texts that hold lists": (
        "traps.test_lines_are_read_whatever_the_name_of_the_file",
        "rexgradient.test_every_field_of_a_study",
        "padchest.test_every_field_of_a_study",
    ),
    "8 frames of coordinates": (
        "table.test_boxes_in_every_frame_are_the_same_box",
        "chest_imagenome.test_every_field_of_the_silver_set",
        "mimic_ils.test_masks_of_an_image_that_is_no_square",
    ),
    "9 several rows an image": (
        "siim.test_every_field_of_a_study",
        "rsna.test_every_field_of_a_study",
        "vindr_cxr.test_every_field_of_a_study",
        "ms_cxr.test_every_field_of_a_study",
    ),
    "10 synonyms of labels": (
        "mimic_cxr_jpg.test_labels_by_a_radiologist_count_more_and_blank_ones_are_not_absent",
        "nih.test_every_field_of_a_study",
        "vindr_cxr.test_the_test_images_are_a_consensus",
    ),
    "11 report text beside the question": (
        "rexvqa.test_the_report_beside_a_question_is_nowhere_in_the_benchmark",
    ),
    "12 quoted line breaks, fields of megabytes": (
        "tables.test_quoted_line_breaks_do_not_end_a_row",
        "tables.test_fields_of_several_megabytes_are_read",
    ),
    "13 ../ in honest files": (
        "rexgradient.test_every_field_of_a_study",
        "mimic_ils.test_masks_outside_of_the_folder_are_not_read",
    ),
    "14 the order of studies": (
        "values.test_studies_of_a_patient_are_ordered_by_time_not_by_id",
        "medical_diff_vqa.test_rows_become_cases",
        "ms_cxr_t.test_trends_join_the_studies_of_mimic",
    ),
    "15 automatic masks are not expert truth": (
        "chexmask.test_every_field_of_a_study",
        "chexmask.test_masks_are_joined_to_images_of_another_set",
        "mimic_ils.test_every_field_of_a_study",
        "chest_imagenome.test_every_field_of_the_silver_set",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_has_a_test(trap):
    for name in TRAPS[trap]:
        module, _, test = name.partition(".")
        assert hasattr(import_module(f"tests.sources.test_{module}"), test), name


@pytest.mark.parametrize(
    "written", ["59000001", "s59000001", "p59000001", 59000001, 59000001.0, "59000001.0"]
)
def test_ids_are_read_with_and_without_their_letter(written):
    assert read_mimic_id(written, "study_id") == "59000001"


@pytest.mark.parametrize(
    "written", ["5900001", "x59000001", "", None, True, "59000001/../59000002", "٥٩٠٠٠٠٠١"]
)
def test_what_is_no_id_is_refused(written):
    with pytest.raises(RecordError, match="expected eight digits"):
        read_mimic_id(written, "study_id")


@pytest.mark.parametrize("name", ["labels.json", "labels.jsonl"])
def test_lines_are_read_whatever_the_name_of_the_file(tmp_path, name):
    (tmp_path / name).write_text('{"path": "a", "label": null}\n{"path": "b", "label": -1}\n')
    found = [decode(entry.content) for entry in read_entries(tmp_path / name)]
    assert found == [{"path": "a", "label": None}, {"path": "b", "label": -1}]

"""Bundles in the exact published layout, made by the tests: own words, tiny pictures, no one's data."""

import json
from pathlib import Path

import cv2
import numpy as np

SIZE = 24
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")


def listed(words, texts):
    return "\n".join([words, "Options:", *(f"({n}) {text}" for n, text in enumerate(texts, start=1))])


def single(words, texts, number, **more):
    return {
        "question": listed(words, texts),
        "answer_options": list(texts),
        "answer": texts[number - 1],
        "answer_index": number,
        **more,
    }


def several(words, texts, numbers, **more):
    return {
        "question": listed(words, texts),
        "answer_options": list(texts),
        "answer": ", ".join(texts[n - 1] for n in numbers),
        "answer_index": list(numbers),
        **more,
    }


def points(words, places, numbers):
    colours = COLOURS[: len(places)]
    texts = [*(f"{colour} point" for colour in colours), "None"]
    block = several(words, texts, numbers or [len(texts)])
    block["answer_options"] = [
        *({"point": list(place), "color": colour} for place, colour in zip(places, colours, strict=True)),
        {"point": None, "color": "None"},
    ]
    return block


def masks(words, right, *, files=None, n=4):
    texts = ["1st mask", "2nd mask", "3rd mask", "4th mask"][:n]
    block = single(words, texts, right)
    block["answer_options"] = [
        {
            "type": "true" if number == right else "fake",
            "masks": [f"lesion_{number}.png"],
            "relative_path": files[number - 1]
            if files
            else f"option_{number}_mask_{'answer' if number == right else 'fake'}.png",
        }
        for number in range(1, n + 1)
    ]
    return block


def attributes():
    return {
        "distribution": single(
            "How many zones hold it?",
            ("1 zone", "2 zones", "3 zones", "4 zones or more"),
            2,
            answer_zones=["right lung base", "right mid zone lung"],
        ),
        "location": several(
            "Where is it?",
            (
                "the intersection of the right lateral lung and the right mid zone lung",
                "the left costophrenic angle",
                "the right costophrenic angle",
                "None of the above (options 1-3)",
            ),
            (1, 3),
            answer_zones=["right lateral lung & right mid zone lung"],
        ),
        "severity/measurement": single(
            "How much of the right lung does it take?",
            ("less than 1/3", "1/3 to less than 2/3", "2/3 or more"),
            1,
            overlap_ratio=0.21875,
            selected_lung="right lung",
        ),
        "comparison": single(
            "Which side has more?",
            ("similar on both sides", "larger in the left lung", "larger in the right lung", "only one lung"),
            4,
            left_size=0,
            right_size=311,
            left_has_overlap=False,
            right_has_overlap=True,
        ),
    }


def contour(*, deformed):
    return {
        "no_deformation": not deformed,
        "initial_context": "Coloured points lie on and around the mask.",
        "revision_before_masks": ["lesion_0_deformed.png"],
        "revision_after_masks": ["lesion_2.png"],
        "true_masks": {"0": ["lesion_2.png"]},
        "fake_masks": {"0": ["lesion_1.png", "lesion_3.png", "lesion_4.png"]},
        "true_combination": ["lesion_2.png"],
        "fake_combinations": [["lesion_1.png"], ["lesion_3.png"], ["lesion_4.png"]],
        "contour_eval_qa": single(
            "Must the mask be changed much?",
            ("Yes", "No"),
            1 if deformed else 2,
            relative_path="contour_eval_qa/xray_with_mask.png",
        ),
        "contour_revision_qa_expansion": points(
            "Towards which points must it grow?", [(3, 4), (20, 5), (9, 9), (2, 20)], [1, 3]
        ),
        "contour_revision_qa_contraction": points(
            "At which points must it shrink?", [(3, 4), (20, 5), (9, 9), (2, 20)], []
        ),
        "contour_revision_qa_revision_result": masks("Which mask is right?", 2),
    }


def record(path, *, pair_id, dicom_id="d-1", attributed=True):
    found = {
        "detection_qa": single("Is it there?", ("Yes", "No"), 2 if path == "LF" else 1),
        "pair_id": pair_id,
        "dicom_id": dicom_id,
    }
    if path != "LF":
        found["contour_qa"] = contour(deformed=path == "RR")
        found["attribute_extraction_qa"] = attributes() if attributed else None
    return found


def bundle_records():
    """One of every kind: paths, a lesion without attributes, fields that nobody knows, an unknown lesion."""
    records = {
        "effusion_s1_positive_0": record("RR", pair_id="s1_positive_0", dicom_id="d-1"),
        "opacity_s2_positive_1": record("RF", pair_id="s2_positive_1", dicom_id="d-2"),
        "edema_s3_negative_0": record("LF", pair_id="s3_negative_0", dicom_id="d-3"),
        "cardiomegaly_s4_positive_0": record("RR", pair_id="s4_positive_0", dicom_id="d-4", attributed=False),
        "cardiomegaly_s5_positive_0": record("RF", pair_id="s5_positive_0", dicom_id="d-5", attributed=False),
        "ground glass_s6_negative_2": record("LF", pair_id="s6_negative_2", dicom_id="d-6"),
    }
    records["effusion_s1_positive_0"]["notes"] = {"reader": 3, "ratios": [0.1, 1e-7, 2.0], "é": None}
    records["effusion_s1_positive_0"]["contour_qa"]["contour_eval_qa"]["confidence"] = 0.5
    return records


def picture(seed, *, size=SIZE):
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), np.uint8)


def picture_files(key_id, found):
    """The files that a record's path needs."""
    start = Path("chexpercept", key_id)
    files = [start / "detection_qa" / "xray.png"]
    if found["detection_qa"]["answer"] == "Yes":
        contour_qa = found["contour_qa"]
        files.append(start / "contour_qa" / contour_qa["contour_eval_qa"]["relative_path"])
        if not contour_qa["no_deformation"]:
            revision = start / "contour_qa" / "contour_revision_qa"
            files.append(revision / "xray_with_mask_and_points.png")
            block = contour_qa["contour_revision_qa_revision_result"]
            files += [revision / option["relative_path"] for option in block["answer_options"]]
    return files


def write_pictures(root, key_id, found):
    for number, file in enumerate(picture_files(key_id, found)):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cv2.imencode(".png", picture([number, *key_id.encode()]))[1].tobytes())


def write_bundle(root, records=None):
    records = bundle_records() if records is None else records
    root.mkdir(parents=True, exist_ok=True)
    for key_id, found in records.items():
        write_pictures(root, key_id, found)
    (root / "chexpercept.json").write_text(json.dumps(records, indent=1))
    return root

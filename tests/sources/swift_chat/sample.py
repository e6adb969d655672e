"""Conversations in the layout of the published sample, with words of our own."""

import copy
import json

ROOT = "/data/somebody/data/mimic-cxr-jpg/files/p10/p10000001"
BOX = "<|ref|> left lung <|/ref|> <|box|>(50.45, 10.27), (90.62, 80.36)<|/box|>"


def item(stage, label, kind, question, answer, *, seen=1, **more):
    return {
        "stage": stage,
        "task_type": label,
        "qtype": kind,
        "image_input_count": seen,
        "question": question,
        "answer": answer,
        **more,
    }


def content():
    """Items in the order of stages; what is shown enters with the first and with the ninth."""
    boxed = {"bbox_list": [[113, 23, 203, 180]], "image_id": 1, "num_of_images": 1, "target": "left lung"}
    return [
        item(1, "View_Information", "open", "Which view is it?", "A frontal view.", is_joint_sent=False),
        item(
            2,
            "Findings_Identification",
            "yes/no",
            "Is anything abnormal?",
            "Yes, something is.",
            target="yes_no_abnormality",
        ),
        item(
            2,
            "Findings_Identification",
            "yes/no",
            "Is there edema? Answer with yes or no only.",
            "No",
            target="abnormality_[edema]",
        ),
        item(
            2,
            "Findings_Identification",
            "multi-choice-2",
            "Is there a chest tube? [A. Yes; B. No]",
            "A. Yes",
            option_list=["Yes", "No"],
            answer_list=["Yes"],
            target="foreign_body_[chest tube]",
        ),
        item(
            3,
            "Attributes_Description",
            "multi-choice-3",
            "Where is it? A. apex; B. base; C. none of these",
            "A. apex and B. base",
            option_list=["A. apex", "B. base", "C. none of these"],
            answer_list=["A. apex", "B. base"],
            target="location_[effusion]",
        ),
        item(3, "Findings_Detection", "detection", "[detection] Box the left lung.", f"Here: {BOX}", **boxed),
        item(
            3,
            "Findings_Identification",
            "open",
            "What is in the box (10, 10), (20, 20)?",
            "An effusion.",
            is_joint_sent=True,
        ),
        item(
            4,
            "Relationships_Analysis",
            "open",
            "How do they relate?",
            "One causes the other.",
            is_joint_sent=True,
            link_tag=True,
        ),
        item(
            5,
            "Differences_Comparison[Choice]",
            "multi-choice-2",
            "Better or worse? 1. better 2. worse",
            "2. worse",
            seen=2,
            option_list=["better", "worse"],
            answer_list=["worse"],
        ),
        item(
            6,
            "Future_Trend_Analysis",
            "open",
            "What next?",
            "It will clear.",
            seen=2,
            is_joint_sent=True,
            polish_stage6=True,
        ),
        item(
            7,
            "Diagnosis_Advice",
            "open",
            "What to do, in at least 3 words?",
            "Repeat the image soon.",
            seen=2,
            is_joint_sent=True,
            qwen_accepted=False,
            reason="Not in the report.",
        ),
        item(
            8,
            "Report_Generation[ALL]",
            "open",
            "Write the report.",
            "Impression: Effusion.\nFindings: Fluid at the base.",
            seen=2,
            is_joint_sent=True,
        ),
    ]


def chatted(items):
    """The second copy of the text: system, user and assistant in turn, with a lead-in where an image enters."""
    said = [{"role": "system", "content": "You are an assistant."}]
    seen = 0
    for one in items:
        count = one["image_input_count"]
        lead = (
            "This is the current image: <image>\n"
            if seen == 0
            else "Compare with the earlier image <image>. "
        )
        question = f"{lead}{one['question']}" if count > seen else one["question"]
        seen = max(seen, count)
        said += [{"role": "user", "content": question}, {"role": "assistant", "content": one["answer"]}]
    return said


def record(**changes):
    items = changes.pop("content", None) or content()
    fields = {
        "source": "mimic_cxr",
        "pat_id": "p10000001",
        "study_id": "s50000002",
        "ref_study_id": "s50000001",
        "pos_study_id": "s50000003",
        "image": [f"{ROOT}/s50000002/a.jpg", f"{ROOT}/s50000001/b.jpg"],
        "content": items,
        "messages": chatted(items),
    }
    return copy.deepcopy({**fields, **changes})


def alone(items, **changes):
    """A record of one image, without reference or later study."""
    return record(
        content=items,
        **{"ref_study_id": "", "pos_study_id": "", "image": [f"{ROOT}/s50000002/a.jpg"], **changes},
    )


def numbered(number, **changes):
    """A record of another patient."""
    name = f"p1{number:07d}"
    path = f"/data/somebody/data/mimic-cxr-jpg/files/{name[:3]}/{name}"
    images = [f"{path}/s50000002/a.jpg", f"{path}/s50000001/b.jpg"]
    return record(**{"pat_id": name, "image": images, **changes})


def encoded(value):
    return json.dumps(value).encode()

"""What single sentences state: denials, doubts, normal organs, what has gone, and the traps between them."""

import pytest

from carina.reports import read_report
from carina.studies import Study
from carina.studies.assessment import certainty_of
from carina.studies.model import Device, Finding

P, U, A = "present", "uncertain", "absent"
CLEAR = ("atelectasis", "consolidation", "edema", "lung opacity", "mass", "nodule", "pneumonia")
NO_ACUTE = ("consolidation", "edema", "lung opacity", "pleural effusion", "pneumonia", "pneumothorax")
NORMAL = (*CLEAR, "cardiomegaly", "pleural effusion", "pneumothorax")

SHORT = {
    "eff": "pleural effusion", "ptx": "pneumothorax", "cons": "consolidation", "pna": "pneumonia",
    "atel": "atelectasis", "card": "cardiomegaly", "fx": "fracture", "op": "lung opacity", "nod": "nodule",
    "ett": "endotracheal tube", "pm": "pacemaker", "ct": "chest tube",
}  # fmt: skip


def expected(text: str) -> dict[str, str]:
    """ "-eff ?pna +edema" as names with certainty."""
    marks = {"+": P, "?": U, "-": A}
    found = {}
    for word in text.split():
        name = word[1:].replace("_", " ")
        found[SHORT.get(name, name)] = marks[word[0]]
    return found


def certainties(text: str) -> dict[str, str]:
    reading = read_report(text)
    things: list[Finding | Device] = [*reading.findings, *reading.devices]
    return {each.name: each.certainty for each in things}


DENIALS = """
No focal consolidation, effusion, or pneumothorax. | -cons -eff -ptx
There is no pleural effusion. | -eff
Pleural effusion and pneumothorax are not seen. | -eff -ptx
Pleural effusion is not identified. | -eff
No sign of pneumothorax or effusion. | -ptx -eff
There are no signs of edema. | -edema
Negative for pneumothorax. | -ptx
Free of consolidation, edema, and effusion. | -cons -edema -eff
The chest is free of effusion and pneumothorax. | -eff -ptx
The lungs are free of consolidation. | -cons
The lungs are clear of infiltrate. | -op
Effusion: none. | -eff
Pneumothorax is absent. | -ptx
Consolidation, effusion, and pneumothorax are absent. | -cons -eff -ptx
Absence of pleural effusion. | -eff
Neither effusion nor pneumothorax is seen. | -eff -ptx
There is neither consolidation nor edema. | -cons -edema
Nothing to suggest pneumonia. | -pna
Nil focal consolidation. | -cons
The lungs show no consolidation, nodule, or mass. | -cons -nod -mass
Lungs without consolidation or nodule. | -cons -nod
Pneumothorax has been excluded. | -ptx
No definite pleural effusion seen. | -eff
No suspicious nodule. | -nod
No findings to suggest pneumonia. | -pna
The radiograph fails to show pneumonia. | -pna
The heart is not enlarged. | -card
The heart does not appear enlarged. | -card
There is no enlargement of the heart. | -card
Pulmonary vasculature is not congested. | -edema
No pneumothorax nor effusion. | -ptx -eff
No evidence of either effusion or pneumothorax. | -eff -ptx
No effusion; no pneumothorax. | -eff -ptx
Pneumothorax cannot be seen. | -ptx
No pneumothorax could be identified. | -ptx
A pneumothorax is not demonstrated on either side. | -ptx
No consolidation to suggest pneumonia. | -cons -pna
There is no collapse or consolidation. | -atel -cons
No rib fracture. | -fx
No pleural fluid collection or air. | -eff
No pneumothorax or effusion on either side. | -ptx -eff
Pneumonia is unlikely. | -pna
Atelectasis rather than pneumonia. | +atel -pna
The appearance is that of atelectasis and not pneumonia. | +atel -pna
There has been no development of pneumothorax. | -ptx
No new consolidation. | -cons
"""

NOT_DENIED = """
No change in the small left effusion. | +eff
No significant interval change in the right effusion. | +eff
The effusion is not significantly changed. | +eff
The nodule has not changed. | +nod
Effusion without significant change. | +eff
No pneumothorax, but a small effusion. | -ptx +eff
No pneumothorax; small effusion. | -ptx +eff
No pneumothorax is seen, and there is a small effusion. | -ptx +eff
No pneumothorax is seen, mild cardiomegaly. | -ptx +card
No effusion, stable cardiomegaly. | -eff +card
No pneumothorax, there is an effusion. | -ptx +eff
No pneumothorax and there is an effusion. | -ptx +eff
No effusion. The heart is enlarged. | -eff +card
No effusion and the heart is enlarged. | -eff +card
Cardiomegaly without edema. | +card -edema
Cardiomegaly without edema or effusion. | +card -edema -eff
Small effusion without pneumothorax, but with atelectasis. | +eff -ptx +atel
Although there is no pneumothorax, an effusion has developed. | -ptx +eff
Not only an effusion but also a consolidation is seen. | +eff +cons
Consolidation with no effusion. | +cons -eff
There is no pneumothorax with the chest tube in place. | -ptx +ct
Nodule not previously seen. | +nod
Except for mild atelectasis, no consolidation. | +atel -cons
Effusion with no associated pneumothorax. | +eff -ptx
"""

DOUBTS = """
Possible left pneumonia. | ?pna
There may be a small effusion. | ?eff
A pneumothorax cannot be excluded. | ?ptx
Pneumothorax can not be entirely excluded. | ?ptx
Pneumothorax is not excluded. | ?ptx
Cannot exclude pneumonia. | ?pna
Cannot rule out pneumonia. | ?pna
An effusion is suspected. | ?eff
An effusion is possible. | ?eff
Questionable nodule. | ?nod
Question of a nodule. | ?nod
Suspicious for pneumonia. | ?pna
Findings are concerning for pneumonia. | ?pna
Opacity may represent pneumonia. | +op ?pna
Opacity could reflect atelectasis or pneumonia. | +op ?atel ?pna
Opacity, likely atelectasis. | +op ?atel
Atelectasis versus infiltrate. | ?atel ?op
Consolidation or atelectasis. | ?cons ?atel
Atelectasis and/or consolidation. | ?atel ?cons
Opacity, possibly pneumonia. | +op ?pna
Atelectasis/consolidation. | +atel +cons
Possible atelectasis/consolidation. | ?atel ?cons
Large calcified lymph nodes/granulomas. | +calcified_lymph_node +granuloma
Probable small effusion. | ?eff
There is a suggestion of a nodule. | ?nod
Raising the possibility of pneumonia. | ?pna
Differential includes atelectasis and pneumonia. | ?atel ?pna
Possible effusion and cardiomegaly. | ?eff +card
Mild cardiomegaly and possible effusion. | +card ?eff
Pneumonia should be considered. | ?pna
An effusion may be present. | ?eff
Pneumonia is difficult to exclude. | ?pna
The heart may be enlarged. | ?card
The heart is borderline enlarged. | ?card
Equivocal nodule. | ?nod
Pneumonia is less likely. | ?pna
Opacity favored to represent atelectasis. | +op ?atel
An endotracheal tube may be present. | ?ett
Consolidation consistent with pneumonia. | +cons +pna
Consolidation compatible with pneumonia. | +cons +pna
"""

NORMALS = """
Heart size is normal. | -card
The heart is normal in size. | -card
The heart is of normal size. | -card
Heart within normal limits. | -card
Normal heart size. | -card
Normal cardiac silhouette. | -card
Cardiac size is within the normal range. | -card
The bones are intact. | -fx
The osseous structures are unremarkable. | -fx
No acute osseous abnormality. | -fx
No osseous injury. | -fx
Ribs are intact. | -fx
Rib cage intact. | -fx
The skeleton is normal. | -fx
The pulmonary vessels are normal. | -edema
Vascular markings are normal. | -edema
Pulmonary vascularity is within normal limits. | -edema
The costophrenic angles are sharp. | -eff
Both costophrenic angles are sharp and clear. | -eff
Costophrenic sulci are clear. | -eff
The pleural spaces are clear. | -eff -ptx
The pleural surfaces are normal. | -eff -ptx
No pleural abnormality. | -eff -ptx
"""

GONE = """
The previously seen effusion has resolved. | -eff
The effusion is no longer seen. | -eff
Interval resolution of the pneumothorax. | -ptx
Interval clearing of the consolidation. | -cons
Previously noted edema has completely cleared. | -edema
The chest tube has been removed. | -ct
Interval removal of the endotracheal tube. | -ett
The pacemaker was removed. | -pm
Resolved pneumonia. | -pna
The effusion shows interval resolution of the pneumothorax. | +eff -ptx
Interval resolution of the effusion and pneumothorax. | -eff -ptx
"""

STATES = """
The heart is mildly enlarged. | +card
The cardiac silhouette is enlarged. | +card
Enlarged cardiac silhouette. | +card
Heart markedly enlarged. | +card
Enlargement of the cardiac silhouette. | +card
The heart shows marked enlargement. | +card
The lung is consolidated. | +cons
Fluid in the left pleural space. | +eff
The pulmonary vessels are engorged. | +edema
Mass effect on the trachea. |
History of pneumonia. |
Evaluate for pneumonia. |
Status post pneumonia. |
Acute findings. |
Tortuous and calcified aorta. | +aortic_tortuosity +aortic_calcification
Calcifications are seen within the aortic arch. | +aortic_calcification
Nodular opacity. | +nod +op
Catheter fracture. |
"""


def cases(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.strip().splitlines():
        sentence, _, facts = line.partition("|")
        found.append((sentence.strip(), facts.strip()))
    return found


@pytest.mark.parametrize(
    ("sentence", "facts"),
    cases(DENIALS) + cases(NOT_DENIED) + cases(DOUBTS) + cases(NORMALS) + cases(GONE) + cases(STATES),
)
def test_a_sentence_states_its_findings_with_certainty(sentence: str, facts: str) -> None:
    assert certainties(sentence) == expected(facts)


@pytest.mark.parametrize(
    ("names", "sentences"),
    [
        (
            CLEAR,
            "The lungs are clear. | Lungs clear. | Both lungs appear clear. | The lung fields are clear. "
            "| Clear lungs. | There are clear lungs. | Lungs: clear. "
            "| The lungs are well aerated and clear. | Lungs are grossly clear bilaterally. | The lungs are normal. "
            "| Lungs are otherwise clear. | Clear lung fields. | The lungs remain clear.",
        ),
        (
            NO_ACUTE,
            "No acute cardiopulmonary abnormality. | No acute disease. | No acute findings. | No active disease. "
            "| No acute pulmonary process. | No evidence of acute cardiopulmonary disease. | No acute process. "
            "| No acute intrathoracic abnormality. | Negative for acute abnormality. | No acute changes. "
            "| No cardiopulmonary abnormality. | No evidence of acute chest disease.",
        ),
        (
            NORMAL,
            "Normal chest. | Normal chest radiograph. | Unremarkable chest radiograph. | The chest is normal. "
            "| Normal examination. | Unremarkable examination of the chest. | Chest within normal limits. "
            "| Normal study. | Normal chest x-ray. | The examination is normal.",
        ),
    ],
)
def test_a_sentence_may_deny_several_findings(names: tuple[str, ...], sentences: str) -> None:
    for sentence in sentences.split("|"):
        found = certainties(sentence.strip())
        assert {name: found.get(name) for name in names} == dict.fromkeys(names, A), sentence


@pytest.mark.parametrize(
    ("sentence", "certainty"),
    [
        ("No acute, displaced rib fractures.", None),
        ("Negative for acute bone abnormality.", None),
        ("No displaced rib fractures, pneumothorax, or pleural effusion.", None),
        ("There is no definite evidence of acute fracture.", None),
        ("No acute bony or soft tissue abnormality.", None),
        ("Visualized osseous structures are without acute abnormality.", None),
        ("The visualized bony structures reveal no acute abnormalities.", None),
        ("No suspicious osseous abnormality.", None),
        ("Negative chest.", None),
        ("The cardiopulmonary silhouette is normal. No acute cardiopulmonary findings.", None),
        ("Unremarkable chest study.", None),
        ("Soft tissue structures are within normal limits.", None),
        ("The mediastinum and perihilar structures are unremarkable.", None),
        ("No acute or chronic fracture.", A),
        ("No fracture.", A),
        ("No bony abnormality.", A),
        ("The bones are intact, with no evidence of acute osseous abnormality.", A),
        ("Old rib fracture. IMPRESSION: No acute fracture.", P),
    ],
)
def test_a_denial_that_is_limited_leaves_an_old_or_subtle_fracture_open(
    sentence: str, certainty: str | None
) -> None:
    study = Study(id="s", patient="p", source="x", images=(), findings=read_report(sentence).findings)
    assert certainty_of(study, "fracture") == certainty


@pytest.mark.parametrize(
    ("sentence", "name", "certainty"),
    [
        ("No acute pneumonia.", "pneumonia", A),
        ("No definite pneumothorax.", "pneumothorax", A),
        ("No displaced rib fractures, pneumothorax, or pleural effusion.", "pneumothorax", A),
        ("No new nodule.", "nodule", None),
        ("No definite mass.", "mass", None),
    ],
)
def test_a_limit_counts_for_findings_that_may_be_old(sentence: str, name: str, certainty: str | None) -> None:
    study = Study(id="s", patient="p", source="x", images=(), findings=read_report(sentence).findings)
    assert certainty_of(study, name) == certainty


def test_a_limited_denial_says_what_it_is_limited_to() -> None:
    (fracture,) = read_report("No acute, displaced rib fractures identified.").findings
    assert (fracture.certainty, fracture.appearance) == (A, ("acute", "displaced"))

"""What passes between an examination and whoever answers, and what is kept of it. Records only."""

from typing import Final, Literal

import msgspec

from carina.cases import Box, Step
from carina.cases.chat import Message
from carina.cases.model import Format, Label
from carina.studies.model import Record

History = Literal["own", "gold", "hint", "none"]
Scope = Literal["step", "stage"]
Profile = Literal["carina", "chexpercept"]
Status = Literal["ok", "refusal", "truncated", "no_answer", "out_of_range", "too_many", "ambiguous"]
"""What became of an answer's words; all but "ok" count as wrong, each as what it is."""
State = Literal["answered", "incomplete", "not_reached"]
"""Whether a step was answered, failed on the way (neither right nor wrong), or was never asked."""

STATUSES: Final[tuple[Status, ...]] = (
    "ok",
    "refusal",
    "truncated",
    "no_answer",
    "out_of_range",
    "too_many",
    "ambiguous",
)


class Policy(Record, frozen=True, kw_only=True):
    """How an examination goes on after each answer."""

    history: History = "own"
    """What the next turn sees: the model's own answers, with wrong ones silently replaced (`gold`), with the truth
    told before the next question (`hint`), or no earlier turn."""
    scope: Scope = "step"
    """Whether `gold` and `hint` mend before every step, or only at the four places of CheXpercept."""
    on_wrong: Literal["continue", "stop"] = "continue"
    """Whether the examination goes on after a wrong stage, so that every stage is measured."""
    profile: Profile = "carina"
    """Whose parser reads the answers."""


class Turn(Record, frozen=True, kw_only=True):
    """One question as it is sent: the whole conversation so far, the question last."""

    case: str
    step: Step
    """What is asked, without its key."""
    system: str
    messages: tuple[Message, ...]
    """Pictures are named by view: a view enters with one message and is never sent twice in a conversation."""


class Parsed(Record, frozen=True, kw_only=True):
    """What an answer says, as far as its words tell."""

    status: Status
    options: tuple[str, ...] = ()
    """Ids of the chosen options, in the order of the step's options."""
    label: Label | None = None
    boxes: tuple[Box, ...] = ()
    """In the frame and on the image of the key, wherever the answer says so or leaves it open."""
    text: str | None = None
    """What is left of the words for a reader, without reasoning."""


class Scores(Record, frozen=True, kw_only=True):
    """How good an answer is; None where a figure has no meaning for the step."""

    correct: bool | None
    """Right or wrong, for formats that have a right answer; None for words, which are only more or less alike."""
    score: float
    """From 0 to 1: what is averaged for the step's format."""
    overlap: float | None = None
    """Jaccard index of the chosen and the right options."""
    f1: float | None = None
    """F1 of the chosen options."""
    iou: float | None = None
    """Mean intersection over union of the boxes, best pairs."""
    rouge: float | None = None
    """ROUGE-L F1 of the words."""
    entity_f1: float | None = None
    """F1 of findings with their certainty, as our report reader understands both texts."""
    attribute_f1: float | None = None
    """F1 of sides, places, grades and trends of those findings."""
    obeyed: bool | None = None
    """Whether the answer keeps to the form that was demanded; None where none was."""


class StepRow(Record, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """One step of one case in one run: a row of `steps.parquet`.

    Fields that it does not know are passed over: an answer that was paid for can be read whatever version kept it.
    """

    case: str
    study: str
    patient: str | None
    protocol: str
    source: str
    target: str | None
    path: str | None
    number: int
    """Place of the step in its case, from 0."""
    step: str
    stage: int
    task: str
    format: Format
    multiple: bool
    options: int
    """How many there are to choose from."""
    state: State
    prompt: str | None = None
    """The last message as it was sent; None where nothing was."""
    hint: str | None = None
    """What was told of earlier steps before the question."""
    seen_sha256: str | None = None
    """Of system prompt, messages and view ids: what the model had seen when it answered."""
    views: tuple[str, ...] = ()
    """Views that entered with this step."""
    raw: str | None = None
    status: Status | None = None
    answer: tuple[str, ...] = ()
    label: Label | None = None
    boxes: tuple[Box, ...] = ()
    text: str | None = None
    gold: str = ""
    """The right answer in words."""
    gold_options: tuple[str, ...] = ()
    gold_label: Label | None = None
    kinds: tuple[str, ...] = ()
    """Of the wrong options that were chosen, what error each shows."""
    correct: bool | None = None
    score: float | None = None
    overlap: float | None = None
    f1: float | None = None
    iou: float | None = None
    rouge: float | None = None
    entity_f1: float | None = None
    attribute_f1: float | None = None
    obeyed: bool | None = None
    chance: float | None = None
    """Probability that a blind draw among the admissible answers is right."""
    stop: str | None = None
    error: str | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    images: int = 0
    """Pictures in the conversation when it was asked."""
    bertscore: float | None = None
    """F1 of words by the states of an encoder; like those below, only where its weights were there when the run was
    closed, and for answers in words."""
    chexbert_f1: float | None = None
    """F1 of the 14 labels of CheXbert."""
    radgraph_entity_f1: float | None = None
    """F1 of the entities of RadGraph by their words and label (RG_E)."""
    radgraph_f1: float | None = None
    """The same, and by whether they have a relation (RG_ER)."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that asked something: a run that was interrupted, mended or grown has several."""

    started: str
    """UTC, ISO 8601 to the second."""
    ended: str | None = None
    """None where it was interrupted, or is at work."""
    base_url: str | None = None
    """Where a served model was asked, without credentials and query; None for its provider's own address."""
    versions: dict[str, str] = {}
    """Of carina and of the packages that ran the model."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: what was asked of whom, and how."""

    kind: Literal["run"] = "run"
    schema: str = "2.0"
    carina: str
    """Version that began the run."""
    id: str
    model: str
    weights: str | None = None
    """Fingerprint of the files of an `hf:` or `onnx:` model, which tells folders of one name apart."""
    blind: bool
    policy: Policy
    system: dict[str, str]
    """System prompt by protocol."""
    max_side: int | None
    sampling: dict[str, float | int | None]
    benchmark: str
    """Where it lay, relative to the run."""
    benchmark_command: str
    fingerprint: str
    """Of the benchmark: parts and what they were made from."""
    cases: tuple[str, ...] | None
    """Ids of the chosen cases; None for all."""
    selection: dict[str, int | str | None]
    """`limit`, `sample_per_cell`, `seed`."""
    calls: tuple[Call, ...] = ()
    """In order; times and versions say nothing about what was asked."""
    text_models: dict[str, str] = {}
    """Models that compared answers in words with their keys, with the shortened SHA-256 of their weights."""

    @property
    def started(self) -> str | None:
        """When the first call began."""
        return self.calls[0].started if self.calls else None

    @property
    def ended(self) -> str | None:
        """When the last call ended; None where it was interrupted."""
        return self.calls[-1].ended if self.calls else None


class RunCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has come to; part of what `carina run --json` prints and of the report."""

    cases: int
    complete: int
    steps: int
    answered: int
    incomplete: int
    not_reached: int
    statuses: dict[str, int]
    seconds: float
    input_tokens: int
    output_tokens: int
    image_sends: int

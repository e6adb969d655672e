"""Records of a run: what a model is asked, what it answers, and what is stored. Records only."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from carina.cases import Box, Step
from carina.cases.messages import Message
from carina.cases.model import Format, Label
from carina.store.frames import TableInfo
from carina.studies.model import Record

History = Literal["own", "gold", "hint", "none"]
Scope = Literal["step", "stage"]
Profile = Literal["carina", "chexpercept"]
Status = Literal["ok", "refusal", "truncated", "no_answer", "out_of_range", "too_many", "ambiguous"]
"""Whether an answer could be parsed; all but "ok" count as wrong, and are counted by class."""
PromptStyle = Literal["plain", "reasoning", "answer"]
"""What the system prompt asks for beside the right form: nothing more, step-by-step reasoning, or the answer alone."""
ImageOrder = Literal["before", "after"]
"""Whether the images of a message stand before its text or after it."""
ImageDetail = Literal["auto", "low", "high"]
"""Resolution at which a served model is asked to look at images; "auto" leaves it to the provider."""
State = Literal["answered", "incomplete", "not_reached"]
"""Whether a step was answered, failed with a transport error (neither right nor wrong), or was never asked."""

SCHEMA: Final = "2.1"
"""Schema of `run.json` and `steps.parquet`. 2.1: `run.json` states the table and the number of cases. In tables of
schema 1, `history` holds what `seen_sha256` holds now."""
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
    """What later turns show of earlier answers, and whether a run of a case goes on after an error."""

    history: History = "own"
    """What the next turn sees: the model's own answers (`own`), wrong ones silently replaced (`gold`), the truth stated
    before the next question (`hint`), or no earlier turn (`none`)."""
    scope: Scope = "step"
    """Whether `gold` and `hint` correct before every step, or only at the four correction points of CheXpercept."""
    on_wrong: Literal["continue", "stop"] = "continue"
    """Whether the case continues after a wrong stage, so that every stage is measured."""
    profile: Profile = "carina"
    """Answer parser to use."""


class Example(Record, frozen=True, kw_only=True):
    """A case with its right answers, which a model sees before the case that it is asked about."""

    case: str
    """Name by which its images are read: `example:` and the id of the case."""
    protocol: str
    messages: tuple[Message, ...]
    """The whole conversation, the right answer to its last question at the end."""


class Prompts(Record, frozen=True, kw_only=True):
    """What a user decides about the prompts of a run."""

    system: str | None = None
    """System prompt in place of those of the protocols; "" for none, None for the protocols' own."""
    style: PromptStyle = "plain"
    image_order: ImageOrder = "before"
    image_detail: ImageDetail = "auto"
    examples: tuple[Example, ...] = ()


class Turn(Record, frozen=True, kw_only=True):
    """One question as it is sent: the whole conversation, the question last."""

    case: str
    step: Step
    """The step, without its answer key."""
    system: str
    messages: tuple[Message, ...]
    """Images are named by view: a view belongs to one message and is never sent twice in a conversation."""
    examples: tuple[Example, ...] = ()
    """Cases with right answers, which come before the messages."""
    image_order: ImageOrder = "before"


class ParsedAnswer(Record, frozen=True, kw_only=True):
    """A parsed answer."""

    status: Status
    options: tuple[str, ...] = ()
    """Ids of the chosen options, in the order of the step's options."""
    label: Label | None = None
    boxes: tuple[Box, ...] = ()
    """In the coordinates and on the image of the answer key, unless the answer says otherwise."""
    text: str | None = None
    """Text of the answer, without reasoning."""


class Scores(Record, frozen=True, kw_only=True):
    """Scores of an answer; None where a score has no meaning for the step."""

    correct: bool | None
    """Right or wrong, for formats that have a right answer; None for free text."""
    score: float
    """From 0 to 1; the score that is averaged for the step's format."""
    overlap: float | None = None
    """Jaccard index of the chosen and the right options."""
    f1: float | None = None
    """F1 of the chosen options."""
    iou: float | None = None
    """Mean intersection over union of the boxes, best pairs."""
    rouge: float | None = None
    """ROUGE-L F1 of the text."""
    entity_f1: float | None = None
    """F1 of findings and devices with certainty, side, place, severity and trend; see `carina.reports.compare`."""
    attribute_f1: float | None = None
    """F1 of the attributes alone: sides, places, severities, trends, relations, recommendations."""
    obeyed: bool | None = None
    """Whether the answer keeps to the form that the question demands; None where it demands none."""


class StepRow(Record, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """One step of one case in one run: a row of `steps.parquet`.

    Unknown fields are ignored, so that an answer can be read whatever version stored it.
    """

    case: str
    study: str
    patient: str | None
    protocol: str
    source: str
    target: str | None
    path: str | None
    number: int
    """Position of the step in its case, from 0."""
    step: str
    stage: int
    task: str
    format: Format
    multiple: bool
    options: int
    """Number of options."""
    state: State
    prompt: str | None = None
    """The last message as it was sent; None where the step was not asked."""
    hint: str | None = None
    """Truth of earlier steps that was stated before the question."""
    seen_sha256: str | None = None
    """SHA-256 of system prompt, messages and view ids: everything the model saw."""
    views: tuple[str, ...] = ()
    """Views that were first shown with this step."""
    raw: str | None = None
    status: Status | None = None
    answer: tuple[str, ...] = ()
    label: Label | None = None
    boxes: tuple[Box, ...] = ()
    text: str | None = None
    gold: str = ""
    """The right answer as text."""
    gold_options: tuple[str, ...] = ()
    gold_label: Label | None = None
    kinds: tuple[str, ...] = ()
    """Kind of error of each wrong option that was chosen."""
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
    """Probability that a random choice among the admissible answers is right."""
    stop: str | None = None
    error: str | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    images: int = 0
    """Images in the conversation when the step was asked."""
    bertscore: float | None = None
    """F1 of tokens by the states of an encoder. This score and those below are for free text, and only where the
    weights were available when the run was closed."""
    chexbert_f1: float | None = None
    """F1 of the 14 labels of CheXbert."""
    radgraph_entity_f1: float | None = None
    """F1 of the entities of RadGraph by their words and label (RG_E)."""
    radgraph_f1: float | None = None
    """The same, and by whether they have a relation (RG_ER)."""


class ExamplesInfo(Record, frozen=True, kw_only=True):
    """Which examples a run shows."""

    benchmark: str
    """Path of their benchmark, relative to the run."""
    fingerprint: str
    """Fingerprint of their benchmark."""
    split: str | None
    """The split that they were drawn from; None for any."""
    per_protocol: int
    max_images: int
    ids: dict[str, tuple[str, ...]]
    """Ids of the cases by protocol, in the order in which they are shown."""


class PromptInfo(Record, frozen=True, kw_only=True):
    """How the prompts of a run differ from those of its protocols; the system prompts are in `RunInfo.system`."""

    own_system: bool = False
    """Whether the system prompt is the user's."""
    style: PromptStyle = "plain"
    image_order: ImageOrder = "before"
    image_detail: ImageDetail = "auto"
    examples: ExamplesInfo | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that asked something; a run that was interrupted, retried or extended has several."""

    started: str
    """UTC, ISO 8601 to the second."""
    ended: str | None = None
    """None where the call was interrupted, or is still running."""
    base_url: str | None = None
    """Address of a served model, without credentials and query; None for its provider's own address."""
    versions: dict[str, str] = {}
    """Versions of Carina and of the packages that ran the model."""
    verify_images: bool | None = None
    """Whether image files were compared with the checksums that their cases state; None before schema 2.1."""


CaseCount = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
"""A number of cases; a thousand times as many as the largest benchmark has."""


class StepsTableInfo(TableInfo, frozen=True, kw_only=True):
    """Size and checksum of `steps.parquet`."""

    cases: CaseCount
    """Number of cases whose steps it holds."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: which model was asked what, and how."""

    kind: Literal["run"] = "run"
    schema: str = SCHEMA
    carina: str
    """Version of Carina that started the run."""
    id: str
    model: str
    weights: str | None = None
    """Fingerprint of the files of an `hf:` or `onnx:` model, which tells folders of one name apart."""
    blind: bool
    policy: Policy
    system: dict[str, str]
    """System prompt by protocol, as it is sent."""
    prompts: PromptInfo = PromptInfo()
    max_side: int | None
    sampling: dict[str, float | int | None]
    benchmark: str
    """Path of the benchmark, relative to the run."""
    benchmark_command: str
    fingerprint: str
    """Fingerprint of the benchmark."""
    cases: tuple[str, ...] | None
    """Ids of the selected cases; None for all."""
    selection: dict[str, int | str | None]
    """`limit`, `sample_per_cell`, `seed`."""
    calls: tuple[Call, ...] = ()
    """In order; two runs with different times or versions may still ask the same."""
    text_models: dict[str, str] = {}
    """Models that compared free text with the answer keys, with the shortened SHA-256 of their weights."""
    case_count: CaseCount | None = None
    """Number of selected cases; None in runs of earlier versions."""
    log_names_run: bool = False
    """Whether every line of the log states its run; not in runs that earlier versions began."""
    request: dict[str, Any] = {}
    """Options of requests beyond `sampling` that were given, by name; see `carina.models.RequestOptions`."""
    table: StepsTableInfo | None = None
    """The table of the steps as the last finished call has written it; None before, and in runs of earlier versions."""

    @property
    def started(self) -> str | None:
        """When the first call began."""
        return self.calls[0].started if self.calls else None

    @property
    def ended(self) -> str | None:
        """When the last call ended; None where it was interrupted."""
        return self.calls[-1].ended if self.calls else None


class RunCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a run; part of what `carina run --json` prints and of the report."""

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


class ProgressCount(NamedTuple):
    """Progress of a run since the last report."""

    cases: int = 0
    """Cases that ended."""
    asked: int = 0
    """Questions that were asked, whatever came back."""
    failed: int = 0
    """Questions that failed with an error."""


OnProgress = Callable[[ProgressCount], object]

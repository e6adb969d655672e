"""Where the gates of trek draw the line. Every limit may be set by a file (`carina audit --limits`)."""

import msgspec

from carina.cases.audit import Thresholds


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of trek's gates; a share is judged by whether chance explains that it lies above its limit."""

    common: Thresholds = Thresholds()

    # ---- balance ----
    majority: float = 0.60
    """Share of the most frequent answer among closed questions of one stage, family and kind of target."""
    named_majority: float = 0.60
    """The same for one named target, and for whoever learns the most frequent answer of every name by heart."""
    least_named: int = 30
    """Questions about one name from which its balance is judged."""
    prevalence: tuple[str, ...] = ("any abnormality", "any device", "view", "quality")
    """Families that ask how the study set is, so that their balance is the data's: reported, not judged."""

    # ---- negatives ----
    untagged: float = 0.0
    """Share of "no" about a named finding or device whose origin is not told."""
    one_origin: float = 0.80
    """Share of negatives of one and the same origin."""
    overlap_gain: float = 0.05
    """What "yes if the text that is shown names it" may add to the most frequent answer."""

    # ---- what the conversation tells ----
    seen_warn: float = 0.05
    seen_fail: float = 0.10
    """Difference, either way, between P(yes) of names that were mentioned before and of fresh ones."""
    history_warn: float = 0.03
    history_fail: float = 0.10
    """What a model that reads the question and the right answers before it adds to the prior of the target."""
    history_questions: int = 1500
    """Of each task; drawn by a hash of their ids."""
    told: float = 0.05
    """Closed turns of a staged conversation that an earlier question, marked as restating, answers."""
    told_unmarked: float = 0.0
    """The same for questions that are not marked."""
    restating: float = 0.70
    """Share of turns that restate the truth; all questions about attributes take the finding for granted."""

    # ---- baselines ----
    baseline: float = 0.05
    """How far above chance the first, last or longest option, or "none of these" where it is offered, may be right."""
    boxes: int = 400
    """Boxes of each name that are kept to try the mean box."""

    # ---- wording ----
    template: float = 0.02
    """Share of a stage's questions that one template may make."""
    doubled: float = 0.0
    """Share of turns with a doubled word, a misspelling or a repeated phrase."""
    near: float = 0.90
    """Questions of one family about one target that share so many of their words are nearly the same."""
    again: float = 0.02
    """Share of turns that ask what was asked before in other words."""

    # ---- support ----
    unsupported: float = 0.01
    """Turns that state a fact with neither evidence nor structured truth."""
    unevidenced: float = 0.50
    """Turns with structured truth but no sentence, in conversations that have a report."""
    hedged: float = 0.01
    """"No" answers about something that the report hedges; whatever is recorded as uncertain may not be "no" at all."""

"""What `carina build trek` reports."""

import msgspec

from carina.cases.build_report import BuildReport


class TrekBuildReport(BuildReport, frozen=True, kw_only=True):
    """`build.json` of a trek benchmark."""

    conversations: int
    questions: int
    surveyed: int
    """Studies from which the balance of questions was computed."""
    with_reference: int
    """Conversations that compare with a prior study."""
    with_later: int
    """Conversations that ask about the course up to a follow-up study."""
    skipped: dict[str, int]
    """Studies without a conversation, by reason."""
    images_of_unknown_view: int = 0
    """Images that are not shown because their view is unknown; of a study without a known view, the first is shown."""
    priors_in_other_splits: int = 0
    """Studies whose prior study is not used, because it lies in another split."""
    not_asked: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Questions that are not asked, by task and reason, also about studies of which no question is left."""
    read_by_model: dict[str, int] | None = None
    """Reports, and facts in them, by what became of them; where a model has read the reports."""
    reworded: dict[str, int] | None = None
    """Questions by what became of them in this call; where a model has reworded them."""

"""Text metrics by published models: BERTScore, CheXbert and RadGraph, where their weights are on this machine.

An environment variable names the folder of each; without it the metric is not computed. Nothing is downloaded. Metrics
are computed on the CPU, so that figures do not depend on a graphics card; they can be compared only among runs with the
same weights.
"""

import os
from typing import Final

from carina.runs.score.learned.metric import Pair, TextMetric, TextScorer

__all__ = [
    "BERTSCORE",
    "CHEXBERT",
    "RADGRAPH",
    "Pair",
    "TextMetric",
    "TextScorer",
    "text_metrics",
]

BERTSCORE: Final = "CARINA_BERTSCORE_MODEL"
CHEXBERT: Final = "CARINA_CHEXBERT_MODEL"
RADGRAPH: Final = "CARINA_RADGRAPH_MODEL"


def text_metrics() -> tuple[TextMetric, ...]:
    """Load the metrics whose folders are named by environment variables.

    Raises:
        CarinaError: A folder does not exist, or does not hold the weights of its model.
    """
    if not any(os.environ.get(name) for name in (BERTSCORE, CHEXBERT, RADGRAPH)):
        return ()
    # Imported only where a metric is wanted: these modules need torch.
    from carina.runs.score.learned.bertscore import open_bertscore  # noqa: PLC0415
    from carina.runs.score.learned.chexbert import open_chexbert  # noqa: PLC0415
    from carina.runs.score.learned.radgraph import open_radgraph  # noqa: PLC0415
    from carina.runs.score.learned.weights import folder_named_by  # noqa: PLC0415

    kinds = {BERTSCORE: open_bertscore, CHEXBERT: open_chexbert, RADGRAPH: open_radgraph}
    return tuple(opened(folder_named_by(name)) for name, opened in kinds.items() if os.environ.get(name))

"""Words against words by published models: BERTScore, CheXbert and RadGraph, where their weights lie on this machine.

An environment variable names the folder of each; without it nothing is computed, and nothing is ever downloaded. All of
it is computed on the processor, so that a graphics card changes no figure, and figures compare only among runs with the
same weights.

>>> text_metrics()  # those whose folder is named
"""

import os
from typing import Final

from carina.run.score.learned.metric import Pair, TextMetric
from carina.run.score.learned.rows import TextScorer

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
    """The metrics whose folders are named, loaded; `CarinaError` where a folder is not what it should be."""
    if not any(os.environ.get(name) for name in (BERTSCORE, CHEXBERT, RADGRAPH)):
        return ()
    # Only here: what is not asked for is not imported either.
    from carina.run.score.learned.bertscore import open_bertscore  # noqa: PLC0415
    from carina.run.score.learned.chexbert import open_chexbert  # noqa: PLC0415
    from carina.run.score.learned.radgraph import open_radgraph  # noqa: PLC0415
    from carina.run.score.learned.weights import folder_named_by  # noqa: PLC0415

    kinds = {BERTSCORE: open_bertscore, CHEXBERT: open_chexbert, RADGRAPH: open_radgraph}
    return tuple(opened(folder_named_by(name)) for name, opened in kinds.items() if os.environ.get(name))

"""Statistics for comparing models on benchmarks whose cases cluster in patients. Plain functions on arrays."""

from carina.stats.agreement import cohen_kappa, krippendorff_alpha
from carina.stats.bootstrap import (
    balanced_accuracy,
    mean_interval,
    ratio_intervals,
    ratio_replicates,
    survival,
)
from carina.stats.correction import benjamini_hochberg, holm
from carina.stats.correlation import pearson, spearman
from carina.stats.discrimination import auroc
from carina.stats.interval import Interval, Intervals
from carina.stats.paired import Difference, paired_difference
from carina.stats.power import design_effect, intraclass_correlation, minimum_detectable_difference
from carina.stats.proportion import clopper_pearson, wilson

__all__ = [
    "Difference",
    "Interval",
    "Intervals",
    "auroc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "clopper_pearson",
    "cohen_kappa",
    "design_effect",
    "holm",
    "intraclass_correlation",
    "krippendorff_alpha",
    "mean_interval",
    "minimum_detectable_difference",
    "paired_difference",
    "pearson",
    "ratio_intervals",
    "ratio_replicates",
    "spearman",
    "survival",
    "wilson",
]

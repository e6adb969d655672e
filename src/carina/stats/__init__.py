"""Statistics for benchmarks whose cases cluster in patients: intervals, comparisons, agreement."""

from carina.stats.agreement import cohen_kappa, krippendorff_alpha
from carina.stats.association import auroc, pearson, spearman
from carina.stats.bootstrap import (
    balanced_accuracy,
    mean_interval,
    ratio_intervals,
    ratio_replicates,
    survival,
)
from carina.stats.comparison import Difference, benjamini_hochberg, holm, paired_difference
from carina.stats.interval import Interval, Intervals
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

"""Scoring profiles: the metric variants of Carina, and those of published projects.

The profile of a project scores as the project's code does, including its defects, which the description names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from carina.maps.variants import MARGINS, Variant, parse_variant
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.results import Result

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Profile:
    """A named set of metric variants."""

    name: str
    description: str
    """What is particular about its scoring rules."""
    variants: tuple[Variant, ...]
    interval: Literal["patients", "chexlocalize"] = "patients"
    """What the bootstrap of its summary resamples: patients, or images as cheXlocalize does."""


def _parse_all(*names: str) -> tuple[Variant, ...]:
    return tuple(parse_variant(name) for name in names)


def _carina_variants() -> tuple[Variant, ...]:
    with_both_margins = (
        "hit.expected",
        *(f"{metric}.{rule}" for rule in _THRESHOLDS for metric in ("iou", "dice")),
        "auroc",
        "auprc",
        "auroc_binned.pooled",
        "auprc_binned.pooled",
        "mass",
        "rank",
    )
    return _parse_all(
        *(f"{name}.bilinear_full.{margin}" for margin in reversed(MARGINS) for name in with_both_margins),
        *(f"{metric}.nearest_full.full_image.oracle_grid" for metric in ("iou", "dice")),
        "cnr.bilinear_full.visible_only",
    )


_THRESHOLDS: Final = (
    "minmax_0.5",
    "otsu",
    "tuned_iou_minmax256",
    "oracle_area",
    "oracle_image",
    "oracle_set_iou_minmax256",
)
_MAVL: Final = "corners_224.oracle_set_dice_raw9990"
_RADZERO: Final = "bilinear_full.full_image.oracle_set_dice_sigmoid101"
_AFLOC: Final = "bilinear_full.visible_only.symmetric_0.1+0.2+0.3+0.4+0.5.tp_only"
_QUANTUS: Final = "bilinear_full.full_image"

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(
            "carina",
            "in the pixels of the original image; tied highest pixels count by their mean, empty predictions count, "
            "unseen margins are scored both ways; includes oracles and the limit of the map's grid",
            _carina_variants(),
        ),
        Profile(
            "chexlocalize",
            "resamples images instead of patients; tp_only leaves out empty predictions; thresholds and cut-offs are "
            "tuned for each finding on the validation split",
            _parse_all(
                "hit.torch_full.full_image.first_argmax",
                "iou.torch_full.full_image.otsu_filled.tp_only",
                "iou.torch_full.full_image.otsu_filled.any_mask",
                "iou.torch_full.full_image.otsu_filled.gated",
                "iou.torch_full.full_image.tuned_iou_minmax7.tp_only",
                *(
                    f"{metric}.torch_full.full_image.otsu_filled.pooled"
                    for metric in ("precision", "recall", "specificity")
                ),
            ),
            "chexlocalize",
        ),
        Profile(
            "medklip",
            "in a square of 224 x 224 pixels, in which all pixels of a cell tie: a hit if any highest pixel lies in "
            "the truth; a threshold on raw attention",
            _parse_all(
                "hit.nearest_224.any_max",
                "iou.nearest_224.raw_0.008",
                "dice.nearest_224.raw_0.008",
            ),
        ),
        Profile(
            "mavl",
            "in a square of 224 x 224 pixels; the threshold is the best of 9,990 on the scored images",
            _parse_all(
                "hit.corners_224.any_max",
                *(f"{metric}.{_MAVL}" for metric in ("iou", "dice", "precision", "recall", "accuracy")),
                "dice.corners_224.oracle_image",
            ),
        ),
        Profile(
            "radzero",
            "boxes are the truth of the pointing game; the threshold is the best of 101 on the scored images",
            _parse_all(
                "hit_box.bilinear_full.full_image.first_argmax",
                f"dice.{_RADZERO}",
                f"image_specificity.{_RADZERO}",
                "auroc.bilinear_full.full_image.pooled",
            ),
        ),
        Profile(
            "afloc",
            "leaves out unseen margins and empty predictions; averages over five thresholds; in the pixels of the "
            "original image, whereas the project scores in its padded square of 224 x 224 pixels",
            _parse_all(f"iou.{_AFLOC}", f"dice.{_AFLOC}", "cnr.bilinear_full.visible_only"),
        ),
        Profile(
            "torchray",
            "pointing game with a tolerance of 15 pixels",
            _parse_all("hit.bilinear_full.full_image.within_15"),
        ),
        Profile(
            "quantus",
            "an empty truth is a hit; tied ranks count by their mean, whereas the project takes the order of its sort",
            _parse_all(
                f"hit.{_QUANTUS}.any_max.empty_is_hit",
                f"hit_weighted.{_QUANTUS}.any_max.empty_is_hit",
                f"mass.{_QUANTUS}",
                f"mass_signed.{_QUANTUS}",
                f"rank.{_QUANTUS}",
                f"topk.{_QUANTUS}.top_1000",
                f"topk_gain.{_QUANTUS}.top_1000",
                f"auroc.{_QUANTUS}",
            ),
        ),
    )
}


def find_profile(name: str) -> Profile:
    """Find a scoring profile.

    Args:
        name: Name of the profile, such as "chexlocalize".

    Returns:
        The profile.

    Raises:
        CarinaError: There is no profile of this name.

    Example:
        >>> len(find_profile("torchray").variants)
        1
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise CarinaError(f"profile {name!r}: unknown. Known: {', '.join(PROFILES)}.") from None


def find_variants(variants: "str | Profile | Sequence[str | Variant]") -> tuple[Variant, ...]:
    """The variants of a profile, of the name of a profile, or of a list of variants or their names, without repeats."""
    if isinstance(variants, str):
        variants = find_profile(variants)
    if isinstance(variants, Profile):
        return variants.variants
    return tuple(dict.fromkeys(parse_variant(item) if isinstance(item, str) else item for item in variants))


@dataclass(frozen=True, repr=False)
class MetricList(Result):
    """Scoring profiles, or the metric variants of one profile, with their definitions. Made by `list_metrics`."""

    profile: str | None
    """Name of the profile whose variants are listed; None where profiles are listed."""
    definitions: Mapping[str, str]
    """Definitions of metric variants, or descriptions of profiles, by name."""

    @property
    def path(self) -> Path:
        """The folder of the metrics that come with Carina."""
        return Path(__file__).parent

    def to_frame(self) -> "pl.DataFrame":
        """One row a metric variant, or a profile."""
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            {"name": list(self.definitions), "definition": list(self.definitions.values())},
            schema={"name": pl.String, "definition": pl.String},
        )

    def _summary(self) -> Mapping[str, object]:
        return {"profile": self.profile, "names": len(self.definitions)}


@check_arguments
def list_metrics(*, profile: str | None = None) -> MetricList:
    """List the scoring profiles, or the metric variants of one profile.

    Args:
        profile: Name of a scoring profile; None to list the profiles.

    Returns:
        Names with definitions.

    Raises:
        CarinaError: There is no such profile.

    Example:
        >>> list(list_metrics().definitions)[:3]
        ['carina', 'chexlocalize', 'medklip']
    """
    if profile is None:
        return MetricList(None, {item.name: item.description for item in PROFILES.values()})
    return MetricList(profile, {item.name: item.definition for item in find_profile(profile).variants})

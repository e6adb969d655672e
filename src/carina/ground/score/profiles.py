"""Bundles of variants: Carina's own, and those by which published projects score.

A profile of a project scores as its code does, its defects included; where that is so its description says what.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from carina.errors import CarinaError
from carina.ground.score.variants import MARGINS, Variant, parse


@dataclass(frozen=True)
class Profile:
    """What is scored together under one name."""

    name: str
    about: str
    variants: tuple[Variant, ...]
    interval: Literal["patients", "chexlocalize"] = "patients"
    """How its summary's intervals are made: by patients, or by images as cheXlocalize does."""


def _parsed(*names: str) -> tuple[Variant, ...]:
    return tuple(parse(name) for name in names)


def _ours() -> tuple[Variant, ...]:
    both = (
        "hit.expected",
        *(f"{metric}.{rule}" for rule in _THRESHOLDS for metric in ("iou", "dice")),
        "auroc",
        "auprc",
        "auroc_binned.pooled",
        "auprc_binned.pooled",
        "mass",
        "rank",
    )
    return _parsed(
        *(f"{name}.bilinear_full.{margin}" for margin in reversed(MARGINS) for name in both),
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
            "in original pixels, ties by expectation, empty predictions counted, unseen margins both ways; oracles "
            "and the limit of the map's grid beside the rest",
            _ours(),
        ),
        Profile(
            "chexlocalize",
            "images resampled instead of patients, empty predictions left out of tp_only; thresholds and cut-offs "
            "tuned on the validation split by finding",
            _parsed(
                "hit.bilinear_full.full_image.first_argmax",
                "iou.bilinear_full.full_image.otsu_filled.tp_only",
                "iou.bilinear_full.full_image.otsu_filled.any_mask",
                "iou.bilinear_full.full_image.otsu_filled.gated",
                "iou.bilinear_full.full_image.tuned_iou_minmax7.tp_only",
                *(
                    f"{metric}.bilinear_full.full_image.otsu_filled.pooled"
                    for metric in ("precision", "recall", "specificity")
                ),
            ),
            "chexlocalize",
        ),
        Profile(
            "medklip",
            "in a square of 224, so that a whole cell of the map may tie for the highest, a hit if any of it is true; "
            "a threshold on raw attention",
            _parsed(
                "hit.nearest_224.any_max",
                "iou.nearest_224.raw_0.008",
                "dice.nearest_224.raw_0.008",
            ),
        ),
        Profile(
            "mavl",
            "in a square of 224; the threshold is the best of 9,990 on the scored images",
            _parsed(
                "hit.corners_224.any_max",
                *(f"{metric}.{_MAVL}" for metric in ("iou", "dice", "precision", "recall", "accuracy")),
                "dice.corners_224.oracle_image",
            ),
        ),
        Profile(
            "radzero",
            "boxes as truth of the pointing game; the threshold is the best of 101 on the scored images",
            _parsed(
                "hit_box.bilinear_full.full_image.first_argmax",
                f"dice.{_RADZERO}",
                f"image_specificity.{_RADZERO}",
                "auroc.bilinear_full.full_image.pooled",
            ),
        ),
        Profile(
            "afloc",
            "unseen margins and empty predictions left out; averaged over five thresholds. In original pixels, where "
            "the project scores in its padded square of 224",
            _parsed(f"iou.{_AFLOC}", f"dice.{_AFLOC}", "cnr.bilinear_full.visible_only"),
        ),
        Profile(
            "torchray",
            "pointing game with a tolerance of 15 pixels",
            _parsed("hit.bilinear_full.full_image.within_15"),
        ),
        Profile(
            "quantus",
            "an empty truth is a hit; ranks share ties equally, where the project leaves them to its sort",
            _parsed(
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


def profile(name: str) -> Profile:
    """A profile by its name."""
    try:
        return PROFILES[name]
    except KeyError:
        raise CarinaError(f"profile {name!r}: none of {', '.join(PROFILES)}") from None


def variants_of(chosen: "str | Profile | Sequence[str | Variant]") -> tuple[Variant, ...]:
    """The variants of a profile, of its name, or of a list of variants or their names; each once."""
    if isinstance(chosen, str):
        chosen = profile(chosen)
    if isinstance(chosen, Profile):
        return chosen.variants
    return tuple(dict.fromkeys(parse(one) if isinstance(one, str) else one for one in chosen))

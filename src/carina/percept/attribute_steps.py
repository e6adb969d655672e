"""The four questions about attributes: distribution, location, severity, comparison."""

from typing import Final

import msgspec

from carina.cases import Branch, Key, Option, Step
from carina.cases.facts import Margin
from carina.percept import wording
from carina.percept.attributes import ATTRIBUTES, SEVERITIES, SEVERITY_CUTS, Comparison
from carina.percept.facts import PerceptStepFacts
from carina.percept.records import AttributeTruth, LocationChoice
from carina.percept.rules import Band
from carina.percept.steps import Assembly, make_choice_step, rotate_options

ATTRIBUTE_STEPS: Final = ("4a", "4b", "4c", "4d")
"""Their ids, in the order of `ATTRIBUTES`."""


def make_attribute_steps(attributes: AttributeTruth, assembly: Assembly, right_regions: int) -> list[Step]:
    """The steps whose keys are clear; `right_regions` is the number of right options of the location question."""
    branch = (Branch(step="2", options=("yes" if assembly.path == "RR" else "no",)),)
    steps = []
    if attributes.distribution is not None:
        steps.append(_make_distribution_step(attributes, attributes.distribution, assembly, branch))
    if attributes.locations:
        choice = attributes.locations[right_regions]
        steps.append(_make_location_step(attributes, choice, assembly, branch))
    if attributes.severity:
        steps.append(_make_severity_step(attributes, assembly, branch))
    if attributes.comparison is not None:
        steps.append(_make_comparison_step(attributes, attributes.comparison, assembly, branch))
    if steps:
        # The first of them depends on the contour that was agreed on.
        steps[0] = msgspec.structs.replace(steps[0], depends_on=("3c",) if assembly.path == "RR" else ("2",))
    return steps


def asked_attributes(attributes: AttributeTruth | None) -> tuple[str, ...]:
    """Ids of the attribute steps that a case of this lesion has."""
    if attributes is None:
        return ()
    return tuple(
        step
        for step, task in zip(ATTRIBUTE_STEPS, ATTRIBUTES, strict=True)
        if task not in attributes.not_asked
    )


def _make_distribution_step(
    attributes: AttributeTruth, key: str, assembly: Assembly, branch: tuple[Branch, ...]
) -> Step:
    band = assembly.rules.region
    return make_choice_step(
        "4a",
        task="distribution",
        question=wording.distribution(assembly.lesion),
        options=rotate_options(assembly, "4a", wording.ZONE_COUNTS, key),
        key=key,
        reached_by=branch,
        facts=PerceptStepFacts(
            zone_ratios={
                # Between the ends of the band, a zone does not change the key of a lesion in many zones.
                zone: Margin(share, 0.0, 1.0)
                if band.low < share < band.high
                else _coverage_margin(share, band, is_covered=zone in attributes.affected)
                for zone, share in attributes.zones.items()
            }
        ).rows(),
    )


def _coverage_margin(share: float, band: Band, *, is_covered: bool) -> Margin:
    """The covered share with the range outside the undecided band in which the key holds."""
    return Margin(share, band.high, 1.0) if is_covered else Margin(share, 0.0, band.low)


def _make_location_step(
    attributes: AttributeTruth, choice: LocationChoice, assembly: Assembly, branch: tuple[Branch, ...]
) -> Step:
    rules = assembly.rules
    names = _order_regions(choice, assembly)
    options = [Option(id=_option_id(name), text=wording.region(name)) for name in names]
    options.append(Option(id="none", text=wording.NONE_OF_REGIONS))
    facts = PerceptStepFacts(
        region_ratios={
            _option_id(name): _coverage_margin(
                attributes.regions[name], rules.region, is_covered=name in choice.right
            )
            for name in names
        },
        region_overlaps={
            (_option_id(one), _option_id(other)): Margin(share, 0.0, rules.option_overlap)
            for one, other, share in choice.overlaps
        },
    )
    right = tuple(_option_id(name) for name in names if name in choice.right)
    return Step(
        id="4b",
        stage=4,
        task="location",
        format="choice",
        multiple=True,
        score="set",
        question=wording.with_options(wording.location(assembly.lesion), [option.text for option in options]),
        options=tuple(options),
        uses=("v1",),
        reached_by=branch,
        key=Key(
            options=right or ("none",),
            kinds=(*("inside" if name in choice.right else "outside" for name in names), "none"),
        ),
        facts=facts.rows(),
    )


def location_step_name(right: int) -> str:
    """The name by which key positions are balanced, for location questions with this number of right regions."""
    return f"4b with {right} right"


def _order_regions(choice: LocationChoice, assembly: Assembly) -> list[str]:
    """The regions in the order of the options; a single right (or single wrong) one is at its balanced position."""
    right, wrong = (
        [list(names)[n] for n in assembly.chance.permutation(len(names))]
        for names in (choice.right, choice.wrong)
    )
    if len(right) == 1 or len(wrong) == 1:
        odd, names = (right, wrong) if len(right) == 1 else (wrong, right)
        names.insert(assembly.key_position(location_step_name(len(right)), len(names) + 1), odd[0])
        return names
    return right + wrong


def _option_id(name: str) -> str:
    return name.replace(" ", "-")


def _make_severity_step(attributes: AttributeTruth, assembly: Assembly, branch: tuple[Branch, ...]) -> Step:
    sides = sorted(attributes.severity)
    side = sides[int(assembly.chance.integers(len(sides)))]
    key, margin = attributes.severity[side], assembly.rules.severity_margin
    cuts = (0.0, *SEVERITY_CUTS, 1.0)
    place = SEVERITIES.index(key)
    return make_choice_step(
        "4c",
        task="severity",
        question=wording.severity(assembly.lesion, side),
        options=rotate_options(assembly, "4c", wording.SEVERITIES, key),
        key=key,
        reached_by=branch,
        facts=PerceptStepFacts(
            side=side,
            share=Margin(
                attributes.lungs[side],
                low=cuts[place] + (margin if place else 0.0),
                high=cuts[place + 1] - (margin if place < len(SEVERITIES) - 1 else 0.0),
            ),
        ).rows(),
    )


def _make_comparison_step(
    attributes: AttributeTruth, key: Comparison, assembly: Assembly, branch: tuple[Branch, ...]
) -> Step:
    rules = assembly.rules
    shares = {
        side: _coverage_margin(share, rules.presence, is_covered=share >= rules.presence.high)
        for side, share in attributes.lungs.items()
    }
    sizes = attributes.sizes
    ratio: Margin | None = None
    if key != "one":
        measured = max(sizes.values()) / min(sizes.values())
        is_similar = key == "similar"
        ratio = Margin(measured, 1.0, rules.ratio.low) if is_similar else Margin(measured, rules.ratio.high)
    facts = PerceptStepFacts(
        right_share=shares["right"],
        left_share=shares["left"],
        right_size=float(sizes["right"]),
        left_size=float(sizes["left"]),
        larger_side=max(sizes, key=lambda side: sizes[side]),
        size_ratio=ratio,
    )
    order = [name for name in wording.COMPARISONS if name != key]
    others = [order[n] for n in assembly.chance.permutation(len(order))]
    others.insert(assembly.key_position("4d", len(wording.COMPARISONS)), key)
    return make_choice_step(
        "4d",
        task="comparison",
        question=wording.comparison(assembly.lesion),
        options=[Option(id=name, text=wording.COMPARISONS[name]) for name in others],
        key=key,
        reached_by=branch,
        facts=facts.rows(),
    )

"""The four questions about attributes: distribution, location, severity, comparison."""

from carina.cases import Branch, Fact, Key, Option, Step
from carina.percept import wording
from carina.percept.attributes import MANY_ZONES, SEVERITIES, SEVERITY_CUTS
from carina.percept.examined import Described, LocationChoice
from carina.percept.steps import Assembly, cycle, single


def attribute_steps(described: Described, assembly: Assembly, right_regions: int) -> list[Step]:
    branch = (Branch(step="2", options=("yes" if assembly.path == "RR" else "no",)),)
    return [
        _distribution(described, assembly, branch),
        _location(described, described.locations[right_regions], assembly, branch),
        _severity(described, assembly, branch),
        _comparison(described, assembly, branch),
    ]


def _distribution(described: Described, assembly: Assembly, branch: tuple[Branch, ...]) -> Step:
    band = assembly.rules.region
    count = len(described.affected)
    key = f"{MANY_ZONES}+" if count >= MANY_ZONES else str(count)
    return single(
        "4a",
        task="distribution",
        question=wording.distribution(assembly.lesion),
        options=cycle(assembly, "4a", wording.ZONE_COUNTS, key),
        key=key,
        reached_by=branch,
        depends_on=("3c",) if assembly.path == "RR" else ("2",),
        facts=tuple(
            Fact(name="zone ratio", about=zone, value=share, low=band.high, high=1.0)
            if zone in described.affected
            else Fact(name="zone ratio", about=zone, value=share, low=0.0, high=band.low)
            for zone, share in described.zones.items()
        ),
    )


def _location(
    described: Described, choice: LocationChoice, assembly: Assembly, branch: tuple[Branch, ...]
) -> Step:
    rules = assembly.rules
    names = _in_place(choice, assembly)
    options = [Option(id=_slug(name), text=wording.region(name)) for name in names]
    options.append(Option(id="none", text=wording.NONE_OF_REGIONS))
    facts = [
        Fact(
            name="region ratio",
            about=_slug(name),
            value=described.regions[name],
            low=rules.region.high,
            high=1.0,
        )
        if name in choice.right
        else Fact(
            name="region ratio",
            about=_slug(name),
            value=described.regions[name],
            low=0.0,
            high=rules.region.low,
        )
        for name in names
    ]
    facts += [
        Fact(
            name="overlap",
            about=f"{_slug(one)} {_slug(other)}",
            value=share,
            low=0.0,
            high=rules.option_overlap,
        )
        for one, other, share in choice.overlaps
    ]
    right = tuple(_slug(name) for name in names if name in choice.right)
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
        facts=tuple(facts),
    )


def location_step(right: int) -> str:
    """Under which name the places of a location question with so many right regions are kept in balance."""
    return f"4b with {right} right"


def _in_place(choice: LocationChoice, assembly: Assembly) -> list[str]:
    """The regions in their order: the one that is not like the others comes to the place that is due."""
    right, wrong = (
        [list(names)[n] for n in assembly.chance.permutation(len(names))]
        for names in (choice.right, choice.wrong)
    )
    if len(right) == 1 or len(wrong) == 1:
        odd, names = (right, wrong) if len(right) == 1 else (wrong, right)
        names.insert(assembly.due(location_step(len(right)), len(names) + 1), odd[0])
        return names
    return right + wrong


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _severity(described: Described, assembly: Assembly, branch: tuple[Branch, ...]) -> Step:
    sides = sorted(described.severity)
    side = sides[int(assembly.chance.integers(len(sides)))]
    key, margin = described.severity[side], assembly.rules.severity_margin
    cuts = (0.0, *SEVERITY_CUTS, 1.0)
    place = SEVERITIES.index(key)
    return single(
        "4c",
        task="severity",
        question=wording.severity(assembly.lesion, side),
        options=cycle(assembly, "4c", wording.SEVERITIES, key),
        key=key,
        reached_by=branch,
        facts=(
            Fact(name="side", text=side),
            Fact(
                name="share",
                value=described.lungs[side],
                low=cuts[place] + (margin if place else 0.0),
                high=cuts[place + 1] - (margin if place < len(SEVERITIES) - 1 else 0.0),
            ),
        ),
    )


def _comparison(described: Described, assembly: Assembly, branch: tuple[Branch, ...]) -> Step:
    rules, key = assembly.rules, described.comparison
    facts = [
        Fact(name=f"{side} share", value=share, low=rules.presence.high, high=1.0)
        if share >= rules.presence.high
        else Fact(name=f"{side} share", value=share, low=0.0, high=rules.presence.low)
        for side, share in described.lungs.items()
    ]
    facts += [Fact(name=f"{side} size", value=float(size)) for side, size in described.sizes.items()]
    larger = max(described.sizes, key=lambda side: described.sizes[side])
    facts.append(Fact(name="larger side", text=larger))
    if key != "one":
        ratio = max(described.sizes.values()) / min(described.sizes.values())
        facts.append(
            Fact(name="size ratio", value=ratio, low=1.0, high=rules.ratio.low)
            if key == "similar"
            else Fact(name="size ratio", value=ratio, low=rules.ratio.high)
        )
    order = [name for name in wording.COMPARISONS if name != key]
    others = [order[n] for n in assembly.chance.permutation(len(order))]
    others.insert(assembly.due("4d", len(wording.COMPARISONS)), key)
    return single(
        "4d",
        task="comparison",
        question=wording.comparison(assembly.lesion),
        options=[Option(id=name, text=wording.COMPARISONS[name]) for name in others],
        key=key,
        reached_by=branch,
        facts=tuple(facts),
    )

"""Percept cases as Carina builds them, small: one image, regions, options in any order."""

import cv2
import numpy as np

from carina.cases import (
    Branch,
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Mark,
    Option,
    Overlay,
    Panel,
    Provenance,
    Step,
    write_benchmark,
)
from carina.studies import Region

SIZE = 96
COLOURS = ("blue", "red", "green", "yellow", "pink", "purple", "orange", "brown")


def asked(words, texts):
    return "\n".join([words, "Options:", *(f"({n}) {text}" for n, text in enumerate(texts, start=1))])


def step(step_id, stage, task, options, right, **more):
    multiple = more.pop("multiple", False)
    return Step(
        id=step_id,
        stage=stage,
        task=task,
        format="choice",
        question=asked(f"{task.capitalize()}, step {step_id}?", [option.text for option in options]),
        multiple=multiple,
        options=tuple(options),
        score="set" if multiple else "exact",
        key=Key(options=tuple(right), kinds=more.pop("kinds", ())),
        **more,
    )


def yes_no(step_id, stage, task, right, *, yes_first, **more):
    options = [Option(id="yes", text="Yes"), Option(id="no", text="No")]
    return step(step_id, stage, task, options if yes_first else options[::-1], [right], **more)


def attributes():
    zones = [("1", "1 zone"), ("2", "2 zones"), ("3", "3 zones"), ("4+", "4 zones or more")][::-1]
    regions = [
        ("right lateral lung & right mid zone", "the right lateral mid zone"),
        ("left costophrenic angle", "the left costophrenic angle"),
        ("right costophrenic angle", "the right costophrenic angle"),
        ("none", "None of the above (options 1-3)"),
    ]
    shares = [("high", "2/3 or more"), ("mid", "1/3 to less than 2/3"), ("low", "less than 1/3")]
    sides = [
        ("similar", "similar on both sides"),
        ("left", "larger on the left"),
        ("right", "larger on the right"),
        ("one", "in only one lung"),
    ]
    ratios = {"right lower zone": 0.5, "right mid zone": 0.3, "left lower zone": 0.0}
    common = {"stage": 4, "uses": ("v1",), "reached_by": (Branch(step="1", options=("yes",)),)}

    def one(step_id, task, options, right, **more):
        return step(
            step_id,
            task=task,
            options=[Option(id=i, text=t) for i, t in options],
            right=right,
            **common,
            **more,
        )

    return (
        one(
            "4a",
            "distribution",
            zones,
            ["2"],
            facts=tuple(Fact(name="zone ratio", about=zone, value=ratio) for zone, ratio in ratios.items()),
        ),
        one("4b", "location", regions, [regions[0][0], regions[2][0]], multiple=True),
        one(
            "4c",
            "severity",
            shares,
            ["low"],
            facts=(Fact(name="side", text="right"), Fact(name="share", value=0.21)),
        ),
        one(
            "4d",
            "comparison",
            sides,
            ["one"],
            facts=(
                Fact(name="right share", value=0.21),
                Fact(name="left share", value=0.001),
                Fact(name="right size", value=311.0),
                Fact(name="left size", value=2.0),
            ),
        ),
    )


def region(seed, shift=0):
    mask = np.zeros((SIZE, SIZE), np.uint8)
    cv2.ellipse(mask, (40 + shift, 50), (14 + seed, 18), 20 * seed, 0, 360, 1, -1)
    return Region.from_mask(mask.astype(bool))


def case(
    path, *, number=1, target="effusion", points=5, right=(1,), away=(3,), key=2, yes_first=False, side=None
):
    """`right` and `away` are numbers of the points to expand and to contract at, `key` of the right mask."""
    image = CaseImage(key=f"x-{number}.png", width=SIZE, height=SIZE)
    panel = Panel(image=image.key)
    views = [CaseView(id="v1", panels=(panel,), side=side)]
    regions = []
    lesion = path != "LF"
    steps = [
        yes_no(
            "1", 1, "detection", "yes" if lesion else "no", yes_first=yes_first, shows=("v1",), uses=("v1",)
        )
    ]
    if lesion:
        regions = [CaseRegion(name=f"r{n}", image=image.key, region=region(n)) for n in range(1, 6)]
        shown = (Overlay(region="r5"),)
        views.append(CaseView(id="v2", panels=(Panel(image=image.key, overlays=shown),), side=side))
        steps.append(
            yes_no(
                "2",
                2,
                "contour evaluation",
                "yes" if path == "RR" else "no",
                yes_first=not yes_first,
                shows=("v2",),
                uses=("v1", "v2"),
                reached_by=(Branch(step="1", options=("yes",)),),
            )
        )
    if path == "RR":
        marks = tuple(
            Mark(x=10.5 + 11 * n, y=80.5 - 9 * n, colour=COLOURS[n], text=str(n + 1)) for n in range(points)
        )
        views.append(
            CaseView(id="v3", panels=(Panel(image=image.key, overlays=shown, marks=marks),), side=side)
        )
        options = [
            *(Option(id=f"p{m.text}", text=f"{m.colour} point", mark=m.text) for m in marks),
            Option(id="none", text="None"),
        ]
        common = {"reached_by": (Branch(step="2", options=("yes",)),)}
        for step_id, task, chosen, more in (
            ("3a", "expansion", right, {"shows": ("v3",), "context": "Points are coloured."}),
            ("3b", "contraction", away, {}),
        ):
            steps.append(
                step(
                    step_id,
                    3,
                    task,
                    options,
                    [f"p{n}" for n in chosen] or ["none"],
                    multiple=True,
                    uses=("v1", "v3"),
                    **common,
                    **more,
                )
            )
        names = tuple(f"v{n}" for n in range(4, 8))
        views += [
            CaseView(
                id=name, panels=(Panel(image=image.key, overlays=(Overlay(region=f"r{n}"),)),), side=side
            )
            for n, name in enumerate(names, start=1)
        ]
        masks = [
            Option(id=f"o{n}", text=text, view=name)
            for n, (name, text) in enumerate(
                zip(names, ("1st mask", "2nd mask", "3rd mask", "4th mask"), strict=True), start=1
            )
        ]
        kinds = tuple("key" if n == key else "partial" for n in range(1, 5))
        steps.append(
            step(
                "3c",
                3,
                "revision",
                masks,
                [f"o{key}"],
                shows=names,
                uses=("v1", "v3", *names),
                kinds=kinds,
                **common,
            )
        )
    if lesion and target != "cardiomegaly":
        steps += attributes()
    return Case(
        id=f"c-{number:016x}", protocol="percept", study=f"s-{number}", patient=f"p-{number}", source="phantom",
        target=target, path=path, images=(image,), regions=tuple(regions), views=tuple(views), steps=tuple(steps),
    )  # fmt: skip


def write(root, cases, **more):
    """A benchmark of these cases, with an image for each."""
    images = root / "images"
    images.mkdir(parents=True, exist_ok=True)
    for item in cases:
        for image in item.images:
            grey = np.random.default_rng(list(image.key.encode())).integers(0, 256, (SIZE, SIZE), np.uint8)
            cv2.imwrite(str(images / image.key), grey)
    write_benchmark(root, cases, Provenance(command="test", seed=5, image_root="images", **more))
    return root

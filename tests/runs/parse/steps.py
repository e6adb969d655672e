"""Steps to answer, as short as they can be."""

from carina.cases import Option, Step


def choice(*texts, ids=None, multiple=False):
    """A choice with these options; ids are o1, o2, ... unless given."""
    names = ids or [f"o{n}" for n in range(1, len(texts) + 1)]
    options = tuple(Option(id=name, text=text) for name, text in zip(names, texts, strict=True))
    listed = "\n".join(f"({n}) {text}" for n, text in enumerate(texts, start=1))
    return Step(
        id="s",
        stage=1,
        task="t",
        format="choice",
        question=f"Which?\nOptions:\n{listed}",
        options=options,
        multiple=multiple,
    )


def lettered(*texts, multiple=False):
    """A choice of trek, with letters for ids."""
    return choice(*texts, ids="ABCDEFGHIJ"[: len(texts)], multiple=multiple)


def make_step(form, question):
    return Step(id="s", stage=1, task="t", format=form, question=question)


YN = choice("Yes", "No", ids=["yes", "no"])
NY = choice("No", "Yes", ids=["no", "yes"])
K = choice("1st mask", "2nd mask", "3rd mask", "4th mask")
L = choice(
    "medial half of the right upper zone",
    "lateral half of the left lower zone",
    "right costophrenic angle",
    "None of the above (options 1-3)",
    ids=["a1", "a2", "a3", "none"],
    multiple=True,
)
P = choice(
    "red point",
    "orange point",
    "yellow point",
    "green point",
    "blue point",
    "None",
    ids=["p1", "p2", "p3", "p4", "p5", "none"],
    multiple=True,
)
Z = choice("4 zones or more", "3 zones", "2 zones", "1 zone")
V = choice("less than 1/3", "1/3 to less than 2/3", "2/3 or more")
C = choice("similar in both lungs", "larger in the left lung", "larger in the right lung", "in one lung only")
T = lettered("pleural effusion", "consolidation", "a right-sided pneumothorax", "none of these")
M = lettered(
    "atelectasis", "pulmonary edema", "a fracture", "cardiomegaly", "nothing on this list", multiple=True
)


def numbers(step, parsed):
    """The chosen options by number from 1, or the class of the failure."""
    if parsed.status != "ok":
        assert parsed.options == ()
        return parsed.status
    ids = [option.id for option in step.options]
    return {ids.index(name) + 1 for name in parsed.options}

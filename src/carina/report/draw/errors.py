"""First errors: a bar a run, cut by the stage at which its cases broke."""

from collections.abc import Mapping, Sequence

from carina.draw import Colour, ink_on
from carina.report.analyse.errors import NONE
from carina.report.analyse.figures import Figure
from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, label, label_width, listed
from carina.report.draw.shapes import COLOURS, Area, Drawing, Series, Words, rectangle, text_width


def error_chart(
    name: str,
    shares: Mapping[str, Sequence[Figure]],
    names: Mapping[str, str],
    series: Mapping[str, Series],
) -> Drawing:
    """`names` are those of stages and of no error."""
    whole = [
        (style.name, next((item.value for item in shares.get(run, ()) if item.name == NONE), None))
        for run, style in series.items()
    ]
    drawing = Drawing(
        name,
        WIDTH,
        0,
        "Share of cases by the stage of their first error",
        "Percent of complete cases; stages from left to right, then the cases without an error.",
        f"Right throughout: {listed(whole)}",
    )
    items = drawing.items
    colours = {
        stage: "good" if stage == NONE else f"e{min(8, place)}" for place, stage in enumerate(names, start=1)
    }
    x = LEFT
    for stage, title in names.items():
        items.append(Area(rectangle(x, 8, 13, 13), colours[stage]))
        items.append(Words(x + 19, 19, title, TEXT))
        x += text_width(title, TEXT) + 44
    left, top = label_width(series), 34.0
    width = WIDTH - left - 12
    for place, (run, style) in enumerate(series.items()):
        y = top + 28 * place
        label(items, style, y + 11, left)
        at = left
        for figure in shares.get(run, ()):
            long = width * (figure.value or 0.0)
            if long <= 0:
                continue
            colour = colours[figure.name]
            items.append(Area(rectangle(at, y, max(0.5, long - 1), 22), colour))
            percent = f"{100 * (figure.value or 0):.0f}"
            # In words where they fit, so that nobody has to tell colours apart.
            fitting = [
                text
                for text in (f"{names[figure.name]} {percent}%", percent)
                if long > text_width(text, SMALL) + 8
            ]
            if fitting:
                items.append(Words(at + long / 2, y + 15, fitting[0], SMALL, "middle", ink_of(colour)))
            at += long
    drawing.height = top + 28 * len(series) + 2
    return drawing


def ink_of(colour: str) -> str:
    """Ink or ground: whichever reads better on a bar, in either theme."""
    code = COLOURS[colour][0].lstrip("#")
    dark = ink_on(Colour(*(int(code[at : at + 2], 16) for at in (0, 2, 4)))) != (255, 255, 255)
    return "bar-ink" if dark else "bar-white"

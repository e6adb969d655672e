"""A case in brief: one picture and a few words, for an index of many."""

from dataclasses import dataclass

from carina.cases.model import Case
from carina.draw import Size
from carina.show import case_words
from carina.show.case_pictures import Picture, view_picture
from carina.show.case_source import DrawnViews
from carina.show.pictures import jpeg_uri, shrunk
from carina.show.words import page_name

_THUMBNAIL = Size(width=480, height=480)


@dataclass(frozen=True, kw_only=True)
class CaseCard:
    """One case of an index."""

    case: Case
    page: str
    """File name of the case's page."""
    path: str
    colour: str | None
    picture: Picture | None
    uri: str

    @property
    def steps(self) -> str:
        count = len(self.case.steps)
        return f"{count} step{'s' if count != 1 else ''}"


def case_card(views: DrawnViews, case: Case) -> CaseCard:
    """One case in brief."""
    told = telling_view(case)
    picture = None if told is None else view_picture(views, case, case.view(told), "card")
    return CaseCard(
        case=case,
        page=f"{page_name(case.id)}.html",
        path=case_words.path(case),
        colour=case_words.colour(case.target).hex if case.target else None,
        picture=picture,
        uri="" if picture is None else jpeg_uri(shrunk(picture.pixels, _THUMBNAIL)[..., ::-1]),
    )


def telling_view(case: Case) -> str | None:
    """The view with most drawn on it, options apart: the first of several such; None where nothing is shown."""
    options = {option.view for step in case.steps for option in step.options}
    shown = [view for step in case.steps for view in step.shows]
    wanted = [view for view in shown if view not in options] or shown

    def drawn(view: str) -> int:
        return sum(len(panel.overlays) + len(panel.marks) for panel in case.view(view).panels)

    return max(wanted, key=drawn, default=None)

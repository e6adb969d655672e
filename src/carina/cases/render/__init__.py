"""From a view of a case to the image that a model or a reader gets. Knows nothing of protocols.

>>> views = Views(benchmark, cache=Path("cache"))
>>> views.png(case, "v3")  # bytes of a PNG
>>> views.array(case, "v3")  # (height, width, 3)
"""

from carina.cases.render.drawing import Pixels, render
from carina.cases.render.plan import RENDER_VERSION
from carina.cases.render.views import ImageSource, Views

__all__ = ["RENDER_VERSION", "ImageSource", "Pixels", "Views", "render"]

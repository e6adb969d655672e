"""From a view of a case to the image that a model or a reader gets. Knows nothing of protocols.

>>> from carina import open_benchmark
>>> bench = open_benchmark("bench")
>>> case = bench["c-7db117ee228a361f"]
>>> Views(bench).array(case, case.views[0].id).shape
(128, 128, 3)
"""

from carina.cases.render.drawing import Pixels, render
from carina.cases.render.plan import RENDER_VERSION
from carina.cases.render.views import ImageSource, Views

__all__ = ["RENDER_VERSION", "ImageSource", "Pixels", "Views", "render"]

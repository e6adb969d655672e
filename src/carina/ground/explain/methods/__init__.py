"""Methods that show where a CLIP-style model sees a finding, each in a module of its own.

`METHODS["gem"].maps(model, pixels, prompts)`. Names, needs and options are there without torch.
"""

from carina.ground.explain.methods.registry import METHODS, Cost, Method, Need

__all__ = ["METHODS", "Cost", "Method", "Need"]

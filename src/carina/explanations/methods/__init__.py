"""Explanation methods for CLIP-style models: one module a method, each registered by `@method`.

Modules whose names begin with an underscore hold code that several methods share. Another package announces its methods
through the entry-point group `carina.methods`.
"""

from carina.explanations.methods._method import METHODS, Cost, Method, Need, method

__all__ = ["METHODS", "Cost", "Method", "Need", "method"]

"""The version of Carina."""

__version__ = "0.1.0"

"""Carina: does a vision-language model see what a radiologist sees, step by step, and can it show where?"""

__version__ = "0.1.0"

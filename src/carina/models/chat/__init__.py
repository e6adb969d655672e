"""Vision-language models that answer in words, through transformers: to be asked (`carina run`) or looked into.

Nothing here imports torch before a model is opened.
"""

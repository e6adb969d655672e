"""Parts of in-process vision-language models of transformers: loading, chat templates, image tokens.

Nothing here imports torch before a model is opened.
"""

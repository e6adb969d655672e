"""Questions in other words, by a served model, where their keys are sure to hold."""

from carina.trek.paraphrase.rewording import ParaphraseCounts, core_by_template, paraphrase

__all__ = ["ParaphraseCounts", "core_by_template", "paraphrase"]

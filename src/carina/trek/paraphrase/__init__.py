"""Rewording of questions by a served model, where their keys are certain to stay the same."""

from carina.trek.paraphrase.rewording import ParaphraseCounts, core_by_template, paraphrase

__all__ = ["ParaphraseCounts", "core_by_template", "paraphrase"]

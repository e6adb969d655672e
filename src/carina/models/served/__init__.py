"""Served models, on this machine or paid for: prompts in, answers out, through inspect-ai's model layer.

Optional: `pip install 'carina[served]'`. Keys and addresses come from the environment variables that inspect-ai
documents for each provider, an address also as `base_url`. Not here: the questions, and scoring.
"""

from carina.models.conversation import Reply, Sampling
from carina.models.served.cache import AnswerCache
from carina.models.served.prompting import ask
from carina.models.served.records import ChatMessage, Prompt, key_of
from carina.models.served.service import ServedModel

__all__ = [
    "AnswerCache",
    "ChatMessage",
    "Prompt",
    "Reply",
    "Sampling",
    "ServedModel",
    "ask",
    "key_of",
]

"""Models that somebody serves, local or paid for: prompts in, answers out, through inspect-ai's model layer.

Optional: `pip install 'carina[served]'`. Keys and addresses come from the environment variables that inspect-ai
documents for each provider, an address also as `base_url`. Not here: what is asked, and scoring.
"""

from carina.models.served.asking import ask
from carina.models.served.cache import AnswerCache
from carina.models.served.named import model_named
from carina.models.served.records import Prompt, Reply, Said, Sampling, key_of
from carina.models.served.service import ServedModel

__all__ = [
    "AnswerCache",
    "Prompt",
    "Reply",
    "Said",
    "Sampling",
    "ServedModel",
    "ask",
    "key_of",
    "model_named",
]

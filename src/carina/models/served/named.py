"""How an option of the command line names a served model: `model:openai/gpt-5`."""

from typing import Final

from carina.errors import CarinaError

PREFIX: Final = "model:"


def model_named(value: str, option: str) -> str:
    """The name in inspect-ai of the model that an option gives."""
    name = value.removeprefix(PREFIX)
    if name == value or not name.strip("/") or "/" not in name:
        raise CarinaError(
            f"{option} {value!r}: expected model:PROVIDER/NAME, such as model:openai/gpt-5 or model:ollama/llama3.1"
        )
    return name

"""Where a model is served, and which key it needs."""

import pytest

from carina.models.served.address import is_local, key_variable


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://0.0.0.0:11434", True),
        ("http://localhost.evil.org/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://192.168.1.7:8000", False),
        ("nonsense", False),
    ],
)
def test_an_address_is_on_this_machine_or_not(address, here):
    assert is_local(address) is here


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai-api/local/llama", "LOCAL_API_KEY"),
        ("openai-api/my-server/a/b", "MY_SERVER_API_KEY"),
        ("openai/gpt-5", None),
        ("openai-api/", None),
    ],
)
def test_the_key_has_the_name_of_the_service(name, variable):
    assert key_variable(name) == variable

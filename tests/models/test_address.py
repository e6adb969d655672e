"""Where a model is served, and which key it needs."""

import pytest

from carina.models.served.address import check_address, is_local, key_variable, served_address
from carina.store.errors import CarinaError


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
        ("http://LOCALHOST/v1", True),
        ("http://127.3.2.1/v1", True),
        ("http://[::ffff:127.0.0.1]/v1", True),
        ("http://[::ffff:192.168.1.7]/v1", False),
        ("http://localhost@somewhere.org/v1", False),
        ("http://localhost:80@somewhere.org/v1", False),
        ("http://somewhere.org#@localhost/v1", False),
        ("http://somewhere.org\\@localhost/v1", False),
        ("http://local\thost/v1", False),
        ("http://localhost./v1", False),
        ("http://localhost.localdomain/v1", False),
        ("http://127.0.0.1.somewhere.org/v1", False),
        ("http://2130706433/v1", False),
        ("http://0x7f000001/v1", False),
        ("http://0177.0.0.1/v1", False),
        ("http://127.1/v1", False),
        ("http://[bad", False),
        ("//", False),
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


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://[bad", "Invalid IPv6 URL"),
        ("localhost:8000", "does not start with http:// or https://"),
        ("127.0.0.1:8000/v1", "does not start with http:// or https://"),
        ("ftp://localhost/v1", "does not start with http:// or https://"),
        ("http:localhost", "does not start with http:// or https://"),
        ("http://", "names no host"),
        ("http:///v1", "names no host"),
        ("http://localhost:port/v1", "[Pp]ort"),
        ("http://localhost:99999/v1", "[Pp]ort"),
        ("http://local host/v1", "blanks"),
        ("http://evil\\@localhost/v1", "backslashes"),
        ("http://localhost/\x1b[2J", "control characters"),
    ],
)
def test_what_is_no_address_is_refused_with_its_place(address, message):
    with pytest.raises(CarinaError, match=message) as caught:
        check_address(address, "--base-url")
    assert str(caught.value).startswith("--base-url ")
    assert "http://localhost:8000/v1" in str(caught.value), "an example to follow"


def test_a_wrong_address_in_the_environment_names_its_variable(monkeypatch):
    monkeypatch.setenv("LOOPBACK_BASE_URL", "ftp://user:hidden-word@localhost/v1?key=hidden-word")
    with pytest.raises(CarinaError, match=r"^LOOPBACK_BASE_URL 'ftp://\*\*\*@localhost/v1'") as caught:
        served_address("openai-api/loopback/tiny", None)
    assert "hidden-word" not in str(caught.value)
    with pytest.raises(CarinaError, match=r"^--base-url 'http://\[bad'"):
        served_address("openai-api/loopback/tiny", "http://[bad")

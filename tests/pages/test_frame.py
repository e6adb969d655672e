"""The frame of pages: colours for light, dark and print, and a security policy that allows only its own scripts."""

import base64
import re
from hashlib import sha256

from carina.audits import Audit
from carina.pages import render_audit
from carina.pages.frame import COLOURS, colour_rules, security_policy


def page() -> str:
    return render_audit(
        Audit(status="pass", cases=1, steps=2, patients=1, cells={}, gates=()), title="<mine>"
    )


def test_policy_allows_exactly_the_scripts_and_the_style_sheet_of_the_page() -> None:
    html = page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1).replace("&#39;", "'")
    texts = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", html, re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts}
    assert len(texts) > 1
    assert set(re.findall(r"'sha256-[^']*'", policy)) == digests
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_policy_without_scripts_allows_none() -> None:
    assert "script-src 'none'" in security_policy([], "")


def test_title_is_escaped() -> None:
    assert "<title>Audit of &lt;mine&gt; · Carina</title>" in page()


def test_every_colour_has_a_value_in_light_dark_and_print() -> None:
    rules = str(colour_rules({"extra": ("#010101", "#020202")}))
    dark, printed = rules.split("prefers-color-scheme: dark")[1].split("@media print")
    for name, (light, at_night) in {**COLOURS, "extra": ("#010101", "#020202")}.items():
        assert f"--{name}: {light};" in rules
        assert f"--{name}: {at_night};" in dark
        assert f"--{name}: {light};" in printed

"""The files of the page: all are there, none has a way to make markup of a text, and none names another place."""

import re

from openai_responses_mcp.desk.page.application import FILES, content_of, page

SCRIPTS = [name for name in FILES if name.endswith(".js")]

# What would turn a text into markup or code, or get around the content security policy.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|srcdoc"
    r"|\beval\b|new Function|\bimport\(|localStorage|sessionStorage|\.style\b(?!\.minHeight)|cssText"
)


def test_no_script_makes_markup_of_a_text() -> None:
    assert [name for name in SCRIPTS if DANGEROUS.search(content_of(name).decode())] == []


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    html = page("token", '<b>"ann"')
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", html) == []
    assert html.count("token") == 2
    assert 'content="&lt;b&gt;&quot;ann&quot;"' in html


def test_both_languages_say_the_same_things() -> None:
    text = content_of("words.js").decode()
    english, japanese = re.findall(r"^const (?:english|japanese) = \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE)
    names = [re.findall(r"^ +(\w+): ", part, re.MULTILINE) for part in (english, japanese)]
    assert names[0] == names[1]

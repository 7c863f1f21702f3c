"""Keeps secrets out of everything that is written or shown: known values first, likely ones by their look second."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote, urlsplit

MASK = "***"

# Shorter values ("test", "ollama") are no secrets worth a log in which every such word is starred out.
SHORTEST_SECRET = 8

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_URL_NAME = re.compile(r"PROXY|URL", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/@:]*:(.+)@")

# Inside encoded text the letter of an escape, as in \\n, may stand right before a secret where a word would begin.
_WORD = r"(?:\b|(?<=\\[bfnrt]))"
_LIKELY_SECRETS = (
    (re.compile(_WORD + r"(?:sk|rk|pk)-[A-Za-z0-9_\-]{8,}"), MASK),
    (re.compile(_WORD + r"(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    (
        re.compile(
            r"(api[_-]?key|password|secret|access[_-]?token)([\\\"']*\s*[:=]\s*[\\\"']*)[^\s\\\"'&,;}]{4,}",
            re.IGNORECASE,
        ),
        rf"\1\2{MASK}",
    ),
    # A password may have a slash in it, which no URL allows; what has no colon is a path such as /@name. Bounded, so that
    # a text full of such beginnings takes no longer than any other.
    (re.compile(r"://[^/:\s@\"']{0,64}:[^\s@\"']{1,256}@"), f"://{MASK}@"),
    (re.compile(r"://[^/\s@\"']+@"), f"://{MASK}@"),
)


class SecretMask:
    """Call it with a text to get the text without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret.strip()) if len(form) >= SHORTEST_SECRET}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        for pattern, replacement in _LIKELY_SECRETS:
            text = pattern.sub(replacement, text)
        return text


def secrets_in(environ: Mapping[str, str], *, key_variable: str, base_url: str) -> list[str]:
    """Every value that must not be shown: keys by the name of their variable, passwords inside URLs."""
    keys = [value for name, value in environ.items() if name == key_variable or _SECRET_NAME.search(name)]
    urls = [base_url, *(value for name, value in environ.items() if _URL_NAME.search(name))]
    passwords = [password for url in urls for password in _passwords_in(url)]
    return keys + passwords + [unquote(password) for password in passwords]


def _passwords_in(url: str) -> list[str]:
    """As URLs are read, and as they are meant: up to the last @, whatever stands before it."""
    meant = _CREDENTIALS.search(url)
    try:
        read = urlsplit(url).password
    except ValueError:
        read = None
    return [password for password in dict.fromkeys((read, meant and meant[1])) if password]


def _forms(secret: str) -> Iterable[str]:
    """The secret as it is, and as URLs, JSON, `repr` and base64 would write it; a broken one also in its pieces."""
    yield secret
    # A variable may hold bytes that are no text.
    yield quote(secret, safe="", errors="replace")
    yield quote(secret, errors="replace")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield repr(secret + '"')[1:-2]  # As inside a longer text: its other quotes decide which ones are escaped.
    yield from re.split(r"[\s\x00-\x1f\x7f-\uffff]+", secret)
    yield from _base64_forms(secret.encode("utf-8", "replace"))


def _base64_forms(secret: bytes) -> Iterable[str]:
    """What of the base64 text stays the same wherever in the encoded bytes the secret stands."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret).decode()
        first = -(-shift * 8 // 6)
        last = (shift + len(secret)) * 8 // 6
        yield encoded[first:last]
        yield encoded[first:last].translate(str.maketrans("+/", "-_"))

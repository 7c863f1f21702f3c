"""Keeps secrets out of everything that is written or shown. Nothing else in the package looks for secrets.

`SecretFinder` finds certain secrets: known values, in any encoding, and tokens of a known shape. `SecretMask` replaces
these with stars, and also what only looks like a secret, such as the text after `password=`.
"""

import base64
import json
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote, unquote, urlsplit

MASK = "***"

# Shorter values ("test", "ollama") are common words. Masking them would make a log unreadable.
SHORTEST_SECRET = 8

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_URL_NAME = re.compile(r"PROXY|URL|URI|DSN|STORE|CONNECTION", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/@:]*:(.+)@")

# In escaped text the letter of an escape, as in \\n, may come right before a secret.
_WORD = r"(?:\b|(?<=\\[bfnrt]))"
# A token inside a longer name is not taken for one: a host name, a file name or a path may look like a token, and a
# person who decides on a call has to read it.
_ALONE_BEFORE = r"(?:(?<![A-Za-z0-9_.\-/\\@%~])|(?<=\\[bfnrt]))"
_ALONE_AFTER = r"(?![A-Za-z0-9_@%~/-]|\.[A-Za-z0-9_-]|:[0-9]|\\(?![bfnrtu\"'\\]))"

# A token contains nothing that a shell would act on: a command must not be hidden because of its shape.
_SHAPES = (
    r"(?P<name>(?:sk|rk|pk)-|(?:sk|rk|pk)_(?:live|test)_|whsec_|xai-"  # model providers, payments
    r"|AIza|GOCSPX-|ya29\.|github_pat_|pypi-|xox[abceoprs]-)"  # clouds, code, packages, messages
    r"(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{10,}",
    r"(?P<name>glpat-)(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{10,}(?:\.[0-9]{2}\.(?=[a-z]{0,8}[0-9])[a-z0-9]{9})?",
    # These contain no hyphens or underscores, so `ghp_delete_all_users_1` is not one.
    r"(?P<name>gh[opsur]_|npm_|hf_|gsk_|dop_v1_)(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{10,}",
    r"(?P<name>AKIA|ASIA)(?=[A-Z]{0,15}[0-9])[A-Z0-9]{16}",
    # No top level domain has a digit in it.
    r"(?P<name>SG\.)[A-Za-z0-9_-]{10,}\.(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{10,}",
    r"(?P<name>eyJ)[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){1,3}\.(?=[A-Za-z_-]{0,512}[0-9])[A-Za-z0-9_-]{10,}",
)
_SHAPE_HINTS = (
    *("sk-", "rk-", "pk-", "_live_", "_test_", "whsec_", "xai-", "AIza", "GOCSPX-", "ya29.", "github_pat_", "glpat-"),
    *("pypi-", "xox", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "npm_", "hf_", "gsk_", "dop_v1_", "AKIA", "ASIA", "SG."),
    "eyJ",
)
_LINE_END = r"(?:\r?\n|(?:\\{1,2}r)?\\{1,2}n| )"
_BASE64 = r"(?=[a-z+/=]{0,80}[A-Z0-9])[A-Za-z0-9+/=]"


@dataclass(frozen=True, slots=True)
class _Look:
    """A pattern that can only match a text with one of the hints in it: looking for those first is many times faster."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = MASK

    def matches(self, text: str) -> Iterable[re.Match[str]]:
        return self.pattern.finditer(text) if _any_in(text, self.hints) else ()


def _any_in(text: str, hints: tuple[str, ...]) -> bool:
    # A plain loop: dozens of short texts are masked for each call, and a generator takes five times as long.
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


_TOKENS = tuple(re.compile(shape) for shape in _SHAPES)
_TOKENS_ALONE = tuple(re.compile(_ALONE_BEFORE + shape + _ALONE_AFTER) for shape in _SHAPES)

_PRIVATE_KEY = _Look(
    ("PRIVATE KEY",),
    re.compile(
        r"(-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        # Long lines, and a short one only at the end: a series of short words could be a command.
        rf"(?:{_LINE_END}++(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]{{1,80}}|(?:{_LINE_END}++{_BASE64}{{16,}}+))+"
        rf"(?:{_LINE_END}++{_BASE64}{{1,15}})?(?:{_LINE_END}++=[A-Za-z0-9+/]{{4}})?{_LINE_END}*"
        r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    ),
)

# RFC 3986: the authority ends at the first slash, question mark or hash. A backslash ends a URL, because some programs
# read it as a slash.
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://(?P<authority>[^\s\"'<>\\^`{|}/?#]*)"
    r"(?P<path>[^\s\"'<>\\^`{|}?#]*)(?P<query>\?[^\s\"'<>\\^`{|}#]*)?(?P<fragment>#[^\s\"'<>\\^`{|}]*)?"
)
_PASSWORD = re.compile(r"[A-Za-z0-9._~%+=!,:@-]{1,256}")

# Path segments, and the values of a query or fragment.
_SEGMENT = re.compile(r"(?P<value>[^/]+)")
_VALUE = re.compile(r"(?:[^=&;]*=)?(?P<value>[^&;]+)")

# These hints are looked for in the lower-case text.
_LIKELY_SECRETS = (
    _Look(
        ("sk-", "rk-", "pk-"),
        re.compile(_ALONE_BEFORE + r"(?:sk|rk|pk)-[A-Za-z0-9_\-]{8,}" + _ALONE_AFTER),
    ),
    _Look(
        ("bearer", "basic"),
        re.compile(_WORD + r"(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE),
        rf"\1 {MASK}",
    ),
    _Look(
        ("key", "password", "secret", "token"),
        re.compile(
            r"(api[_-]?key|password|secret|access[_-]?token)([\\\"']*\s*[:=]\s*[\\\"']*)[^\s\\\"'&,;}]{4,}",
            re.IGNORECASE,
        ),
        rf"\1\2{MASK}",
    ),
    _Look(("://",), re.compile(r"://[^/?#\s@\"'\\]+@"), f"://{MASK}@"),
    # People write passwords with a slash in them, although no URL allows it. With a port before the slash it is a URL.
    # Bounded, so that a text full of such beginnings takes no longer than any other.
    _Look(
        ("://",),
        re.compile(r"(://[^/?#:\s@\"'\\]{0,64}:)(?![0-9]*[/?#])[^\s@\"'\\]{1,256}@"),
        rf"\1{MASK}@",
    ),
)

# What a shell would run is not a password, and a log has to show it.
_COMMAND = re.compile(r"\$\(|`")


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """`name` says where the value comes from: a variable, or a URL that contains it as a password."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text. For a known secret, `name` says which one and `form` how it is encoded."""

    start: int
    end: int
    label: str
    name: str = ""
    form: str = ""


def known_secrets(environ: Mapping[str, str], *, key_variable: str = "", base_url: str = "") -> list[KnownSecret]:
    """Every value that must not be shown: keys by the name of their variable, passwords inside URLs."""
    found = [KnownSecret(*item) for item in environ.items() if item[0] == key_variable or _SECRET_NAME.search(item[0])]
    urls = [("the base URL", base_url), *(item for item in environ.items() if _URL_NAME.search(item[0]))]
    for name, url in urls:
        found += [KnownSecret(f"password in {name}", password) for password in _passwords_in(url)]
    return found


def secrets_in(environ: Mapping[str, str], *, key_variable: str, base_url: str) -> list[str]:
    """The values of `known_secrets` alone."""
    return [secret.value for secret in known_secrets(environ, key_variable=key_variable, base_url=base_url)]


class SecretFinder:
    """Finds certain secrets, and labels them."""

    def __init__(self, secrets: Iterable[KnownSecret] = ()) -> None:
        self._forms: dict[tuple[str, str], str] = {}
        for secret in secrets:
            for form, text in _long_forms(secret.value):
                # One name may have two values, such as a password as written and as decoded.
                self._forms[secret.name, _unused(form, secret.name, self._forms)] = text
        # If one value has several names, the first is shown.
        self._sources = {text: source for source, text in reversed(self._forms.items())}
        self._known = _look_for(self._sources)
        self.labels = frozenset(f"‹{name}›" for name, _ in self._forms)

    def find(self, text: str) -> list[Found]:
        """In order, without overlaps."""
        return joined([*self._known_in(text), *shapes_in(text)])

    def value_of(self, name: str, form: str) -> str | None:
        """A known secret in the form in which it was found."""
        return self._forms.get((name, form))

    def _known_in(self, text: str) -> list[Found]:
        found: list[Found] = []
        for match in self._known.matches(text):
            name, form = self._sources[match[0]]
            found.append(Found(match.start(), match.end(), f"‹{name}›", name, form))
        return found


def joined(found: Iterable[Found]) -> list[Found]:
    """In order. Secrets that overlap become one, so that no half of one is left."""
    whole: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, not one.name)):
        if not whole or one.start >= whole[-1].end:
            whole.append(one)
        elif one.end > whole[-1].end:
            whole[-1] = Found(whole[-1].start, one.end, whole[-1].label)
    return whole


def shapes_in(text: str) -> list[Found]:
    """Tokens, private keys and passwords in URLs, recognised by shape and position.

    A token counts if it stands alone, or is a whole path segment, query value or user name in a URL.
    """
    keys = _PRIVATE_KEY.matches(text)
    found = [Found(*match.span(1), label_of("private key", len(match[1]))) for match in keys]
    urls = list(_URL.finditer(text)) if "://" in text else []
    for url in urls:
        found += _secrets_of_url(text, url)
    if _any_in(text, _SHAPE_HINTS):
        starts = [url.start() for url in urls]
        for pattern in _TOKENS_ALONE:
            for match in pattern.finditer(text):
                # Tokens inside a URL are dealt with above.
                around = bisect(starts, match.start())
                if not around or urls[around - 1].end() <= match.start():
                    found += _token(match)
    return joined(found)


def _secrets_of_url(text: str, url: re.Match[str]) -> Iterator[Found]:
    start = url.start("authority")
    login, _, host = url["authority"].rpartition("@")
    if host:
        user, _, password = login.partition(":")
        yield from _token_at(text, start, start + len(user))
        if _PASSWORD.fullmatch(password):
            end = start + len(login)
            yield Found(end - len(password), end, label_of("password", len(password)))
    if url["scheme"].lower() == "file":
        return
    last = url.start() + len(url[0].rstrip(".,;:!?)]"))  # The URL may end a sentence.
    for group, parts in (("path", _SEGMENT), ("query", _VALUE), ("fragment", _VALUE)):
        if url[group]:
            for part in parts.finditer(text, url.start(group) + 1, min(url.end(group), last)):
                yield from _token_at(text, *part.span("value"))


def _token_at(text: str, start: int, end: int) -> list[Found]:
    """One, if this part of the text is a token as a whole, else none."""
    matches = (pattern.fullmatch(text, start, end) for pattern in _TOKENS)
    return next((_token(match) for match in matches if match), [])


def _token(match: re.Match[str]) -> list[Found]:
    if match["name"] != "eyJ":
        return [Found(*match.span(), label_of(f"{match['name']}…", len(match[0])))]
    return [Found(*match.span(), label_of("JWT", len(match[0])))] if _is_jwt(match[0]) else []


def _is_jwt(text: str) -> bool:
    """Three parts if signed, five if encrypted. The first part names the algorithm."""
    parts = text.split(".")
    try:
        header = json.loads(base64.urlsafe_b64decode(f"{parts[0]}=="))
    except (ValueError, RecursionError):
        return False
    return len(parts) in (3, 5) and isinstance(header, dict) and "alg" in header


def replaced(text: str, found: Iterable[Found]) -> str:
    """The text with each secret replaced by its label. The secrets are in order and do not overlap."""
    pieces, end = [], 0
    for one in found:
        pieces += [text[end : one.start], one.label]
        end = one.end
    return "".join([*pieces, text[end:]])


def label_of(what: str, length: int) -> str:
    """Shown in place of a secret where a reader has to know what was there."""
    return f"‹{what}, {length} character{'' if length == 1 else 's'}›"


class SecretMask:
    """Call it with a text to get the text with everything masked that is, or looks like, a secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _look_for({text for secret in secrets for text in _all_forms(secret)})

    def __call__(self, text: str) -> str:
        text = self._without_known(text)
        return _without_likely(replaced(text, (replace(one, label=MASK) for one in shapes_in(text))))

    def rest(self, text: str) -> str:
        """The same for a text whose tokens of known shapes are already replaced."""
        return _without_likely(self._without_known(text))

    def _without_known(self, text: str) -> str:
        return self._known.pattern.sub(MASK, text) if _any_in(text, self._known.hints) else text


def _without_likely(text: str) -> str:
    lower = text.lower()
    for look in _LIKELY_SECRETS:
        if _any_in(lower, look.hints):
            text = look.pattern.sub(partial(_masked, look.replacement), text)
    return text


def _masked(replacement: str, match: re.Match[str]) -> str:
    return match[0] if _COMMAND.search(match[0]) else match.expand(replacement)


# ---------------------------------------------------------------------------------------------------------------------
# Known values and the forms they take


def _look_for(texts: Iterable[str]) -> _Look:
    longest_first = sorted(texts, key=len, reverse=True)
    return _Look(tuple(longest_first), re.compile("|".join(map(re.escape, longest_first))))


def _unused(form: str, name: str, taken: Mapping[tuple[str, str], str]) -> str:
    return form if (name, form) not in taken else _unused(f"{form}'", name, taken)


def _passwords_in(url: str) -> list[str]:
    """As the standard reads a URL, and as people mean it: up to the last @. Each as written and decoded."""
    meant = _CREDENTIALS.search(url)
    try:
        read = urlsplit(url).password
    except ValueError:
        read = None
    written = [password for password in (read, meant and meant[1]) if password]
    return list(dict.fromkeys([*written, *map(unquote, written)]))


def _long_forms(secret: str) -> Iterator[tuple[str, str]]:
    return ((form, text) for form, text in _forms(secret.strip()) if len(text) >= SHORTEST_SECRET)


def _all_forms(secret: str) -> Iterator[str]:
    """All forms of the whole secret, and its pieces if line ends or other unusual characters split it."""
    yield from (text for _, text in _long_forms(secret))
    pieces = re.split(r"[\s\x00-\x1f\x7f-\uffff]+", secret)
    yield from (piece for piece in pieces if len(piece) >= SHORTEST_SECRET)


def _forms(secret: str) -> Iterator[tuple[str, str]]:
    """The secret as it is, and as it looks in URLs, JSON, `repr` and base64."""
    yield "plain", secret
    # A variable may contain bytes that are not text.
    yield "url", quote(secret, safe="", errors="replace")
    yield "path", quote(secret, errors="replace")
    yield "json", json.dumps(secret)[1:-1]
    yield "json utf-8", json.dumps(secret, ensure_ascii=False)[1:-1]
    yield "repr", repr(secret)[1:-1]
    # As inside a longer text, where other quotes decide which are escaped.
    yield "repr in quotes", repr(secret + '"')[1:-2]
    yield from _base64_forms(secret.encode("utf-8", "replace"))


def _base64_forms(secret: bytes) -> Iterator[tuple[str, str]]:
    """The part of the base64 text that does not depend on the bytes around the secret."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret).decode()
        first = -(-shift * 8 // 6)
        last = (shift + len(secret)) * 8 // 6
        yield f"base64 {shift}", encoded[first:last]
        yield f"base64 url {shift}", encoded[first:last].translate(str.maketrans("+/", "-_"))

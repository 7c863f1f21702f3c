"""Keeps secrets out of everything that is written or shown. Both halves find them here and nowhere else.

`SecretFinder` finds what is certainly secret: known values, however they are written, and tokens whose shape says what
they are. `SecretMask` stars these out, and also what only looks like a secret, such as the text after `password=`.
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

# Shorter values ("test", "ollama") are words that a log is full of. Masking them would make it unreadable.
SHORTEST_SECRET = 8

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_URL_NAME = re.compile(r"PROXY|URL|URI|DSN|STORE|CONNECTION", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/@:]*:(.+)@")

# Inside encoded text the letter of an escape, as in \\n, may stand right before a secret where a word would begin.
_WORD = r"(?:\b|(?<=\\[bfnrt]))"
# A token that is part of a longer name is no token: a host name, a file name or a path may look like one, and a
# person who decides on it has to read it.
_ALONE_BEFORE = r"(?:(?<![A-Za-z0-9_.\-/\\@%~])|(?<=\\[bfnrt]))"
_ALONE_AFTER = r"(?![A-Za-z0-9_@%~/-]|\.[A-Za-z0-9_-]|:[0-9]|\\(?![bfnrtu\"'\\]))"

# Nothing that a shell would act on may be part of a token: what is hidden by its shape must not be able to do anything.
_SHAPES = (
    r"(?P<name>(?:sk|rk|pk)-|(?:sk|rk|pk)_(?:live|test)_|whsec_|xai-"  # model providers, payments
    r"|AIza|GOCSPX-|ya29\.|github_pat_|pypi-|xox[abceoprs]-)"  # clouds, code, packages, messages
    r"(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{10,}",
    r"(?P<name>glpat-)(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{10,}(?:\.[0-9]{2}\.(?=[a-z]{0,8}[0-9])[a-z0-9]{9})?",
    # These have no hyphens or underscores in them, so that `ghp_delete_all_users_1` is a name like any other.
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
    """A pattern, and words without which it cannot match: looking for those is many times quicker."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    name: str

    def matches(self, text: str) -> Iterable[re.Match[str]]:
        return self.pattern.finditer(text) if _any_in(text, self.hints) else ()


def _any_in(text: str, hints: tuple[str, ...]) -> bool:
    # A plain loop: most texts are short, and starting a generator takes longer than looking for all the hints.
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
        # Long lines, and one short one at the end: a row of short words could be a command.
        rf"(?:{_LINE_END}++(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]{{1,80}}|(?:{_LINE_END}++{_BASE64}{{16,}}+))+"
        rf"(?:{_LINE_END}++{_BASE64}{{1,15}})?(?:{_LINE_END}++=[A-Za-z0-9+/]{{4}})?{_LINE_END}*"
        r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    ),
    "private key",
)

# RFC 3986: the authority ends at the first slash, question mark or hash. A backslash belongs to no URL, because some
# programs read it as a slash.
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://(?P<authority>[^\s\"'<>\\^`{|}/?#]*)"
    r"(?P<path>[^\s\"'<>\\^`{|}?#]*)(?P<query>\?[^\s\"'<>\\^`{|}#]*)?(?P<fragment>#[^\s\"'<>\\^`{|}]*)?"
)
_PASSWORD = re.compile(r"[A-Za-z0-9._~%+=!,:@-]{1,256}")

_HINTS_OF_SHAPES = (*_SHAPE_HINTS, *_PRIVATE_KEY.hints, "://")

# The hints are looked for in small letters, the replacement stands where a name stands above.
_LIKELY_SECRETS = (
    _Look(
        ("sk-", "rk-", "pk-"),
        re.compile(_ALONE_BEFORE + r"(?:sk|rk|pk)-[A-Za-z0-9_\-]{8,}" + _ALONE_AFTER),
        MASK,
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
    # A password may have a slash in it, which no URL allows. What has a port before the slash is a URL. Bounded, so that
    # a text full of such beginnings takes no longer than any other.
    _Look(
        ("://",),
        re.compile(r"(://[^/?#:\s@\"'\\]{0,64}:)(?![0-9]*[/?#])[^\s@\"'\\]{1,256}@"),
        rf"\1{MASK}@",
    ),
)

_HINTS_OF_LIKELY_SECRETS = tuple(dict.fromkeys(hint for look in _LIKELY_SECRETS for hint in look.hints))

# What a shell would run is no password, and a log has to show it.
_COMMAND = re.compile(r"\$\(|`")


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """`name` says where the value comes from: a variable, or the address that it is the password of."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text. `name` and `form` are those of a known secret, written in one of the forms it can take."""

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
    """Finds what is certainly secret, and says what it is."""

    def __init__(self, secrets: Iterable[KnownSecret] = ()) -> None:
        self._forms: dict[tuple[str, str], str] = {}
        for secret in secrets:
            for form, text in _long_forms(secret.value):
                # Two values of one name, such as a password and what is meant by it, are distinguished by their order.
                self._forms[secret.name, _unused(form, secret.name, self._forms)] = text
        # The first of several names for one value is the one that is shown.
        self._sources = {text: source for source, text in reversed(self._forms.items())}
        self._known = _look_for(self._sources)
        self.labels = frozenset(f"‹{name}›" for name, _ in self._forms)

    def find(self, text: str) -> list[Found]:
        """In order, none touching another."""
        found = [*self._known_in(text), *shapes_in(text)]
        return joined(found) if found else found

    def value_of(self, name: str, form: str) -> str | None:
        """A known secret, written as it was when it was found."""
        return self._forms.get((name, form))

    def _known_in(self, text: str) -> list[Found]:
        found: list[Found] = []
        for match in self._known.matches(text):
            name, form = self._sources[match[0]]
            found.append(Found(match.start(), match.end(), f"‹{name}›", name, form))
        return found


def joined(found: Iterable[Found]) -> list[Found]:
    """In order. What overlaps is one secret, of which no half may be left."""
    whole: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, not one.name)):
        if not whole or one.start >= whole[-1].end:
            whole.append(one)
        elif one.end > whole[-1].end:
            whole[-1] = Found(whole[-1].start, one.end, whole[-1].label)
    return whole


def shapes_in(text: str) -> list[Found]:
    """Tokens, private keys and passwords in URLs, known by their shape and by where they stand.

    A token counts where it stands alone, and as the whole of a path segment, of a query value or of the user in a URL.
    """
    found: list[Found] = []
    if not _any_in(text, _HINTS_OF_SHAPES):
        return found
    found += (Found(*match.span(1), label_of("private key", len(match[1]))) for match in _PRIVATE_KEY.matches(text))
    urls = list(_URL.finditer(text)) if "://" in text else []
    for url in urls:
        found += _secrets_of_url(text, url)
    if _any_in(text, _SHAPE_HINTS):
        starts = [url.start() for url in urls]
        for pattern in _TOKENS_ALONE:
            for match in pattern.finditer(text):
                # Inside a URL its own parts count.
                around = bisect(starts, match.start())
                if not around or urls[around - 1].end() <= match.start():
                    found += filter(None, [_token(match)])
    return joined(found)


def _secrets_of_url(text: str, url: re.Match[str]) -> Iterator[Found]:
    start, end = url.span("authority")
    at = text.rfind("@", start, end)
    if at >= 0 and end > at + 1:
        colon = text.find(":", start, at)
        user = _token_at(text, start, at if colon < 0 else colon)
        if user:
            yield user
        if colon >= 0 and _PASSWORD.fullmatch(text, colon + 1, at):
            yield Found(colon + 1, at, label_of("password", at - colon - 1))
    if url["scheme"].lower() == "file":
        return
    for begin, stop in _parts_of_url(url):
        token = _token_at(text, begin, stop)
        if token:
            yield token


def _parts_of_url(url: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Where the path segments and the values of query and fragment stand."""
    last = len(url[0].rstrip(".,;:!?)]")) + url.start()  # a sentence may end with the URL
    for group, between, before in (("path", "/", ""), ("query", "[&;]", "="), ("fragment", "[&;]", "=")):
        if url[group]:
            for part in re.finditer(rf"[^{between.strip('[]')}]+", url[group]):
                skipped = max(part[0].find(before) + 1, int(part.start() == 0)) if before else 0
                begin = url.start(group) + part.start() + skipped
                yield begin, min(url.start(group) + part.end(), last)


def _token_at(text: str, start: int, end: int) -> Found | None:
    """The secret that this whole part of the text is, if it is one."""
    matches = (pattern.fullmatch(text, start, end) for pattern in _TOKENS)
    return next((_token(match) for match in matches if match), None)


def _token(match: re.Match[str]) -> Found | None:
    name, length = match["name"], match.end() - match.start()
    if name != "eyJ":
        return Found(*match.span(), label_of(f"{name}…", length))
    return Found(*match.span(), label_of("JWT", length)) if _is_jwt(match[0]) else None


def _is_jwt(text: str) -> bool:
    """Signed or encrypted, which is three or five parts, of which the first says how."""
    parts = text.split(".")
    try:
        header = json.loads(base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except (ValueError, RecursionError):
        return False
    return len(parts) in (3, 5) and isinstance(header, dict) and "alg" in header


def replaced(text: str, found: Iterable[Found]) -> str:
    """The text with a label in the place of each secret; they are given in order and do not overlap."""
    pieces, end = [], 0
    for one in found:
        pieces += [text[end : one.start], one.label]
        end = one.end
    return "".join([*pieces, text[end:]]) if pieces else text


def label_of(what: str, length: int) -> str:
    """What stands in the place of a secret where a reader has to know what is there."""
    return f"‹{what}, {length} character{'' if length == 1 else 's'}›"


class SecretMask:
    """Call it with a text to get the text without secrets, and without what looks like one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _look_for({text for secret in secrets for text in _all_forms(secret)})

    def __call__(self, text: str) -> str:
        text = self._without_known(text)
        return _without_likely(replaced(text, (replace(one, label=MASK) for one in shapes_in(text))))

    def rest(self, text: str) -> str:
        """The same for a text in which tokens of known shapes have been replaced already."""
        return _without_likely(self._without_known(text))

    def _without_known(self, text: str) -> str:
        return replaced(text, [Found(*match.span(), MASK) for match in self._known.matches(text)])


def _without_likely(text: str) -> str:
    small = text.lower()
    if not _any_in(small, _HINTS_OF_LIKELY_SECRETS):
        return text
    for look in _LIKELY_SECRETS:
        if _any_in(small, look.hints):
            text = look.pattern.sub(partial(_masked, look.name), text)
    return text


def _masked(replacement: str, match: re.Match[str]) -> str:
    return match[0] if _COMMAND.search(match[0]) else match.expand(replacement)


# ---------------------------------------------------------------------------------------------------------------------
# Known values and the forms they take


def _look_for(texts: Iterable[str]) -> _Look:
    longest_first = sorted(texts, key=len, reverse=True)
    return _Look(tuple(longest_first), re.compile("|".join(map(re.escape, longest_first))), "")


def _unused(form: str, name: str, taken: Mapping[tuple[str, str], str]) -> str:
    return form if (name, form) not in taken else _unused(f"{form}'", name, taken)


def _passwords_in(url: str) -> list[str]:
    """As the standard reads a URL, and as people mean it: up to the last @. Each as written and as sent."""
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
    """All forms of the whole secret. If it has line ends or the like in it, its pieces too."""
    yield from (text for _, text in _long_forms(secret))
    pieces = re.split(r"[\s\x00-\x1f\x7f-\uffff]+", secret)
    yield from (piece for piece in pieces if len(piece) >= SHORTEST_SECRET)


def _forms(secret: str) -> Iterator[tuple[str, str]]:
    """The secret as it is, and as URLs, JSON, `repr` and base64 would write it."""
    yield "plain", secret
    # A variable may hold bytes that are no text.
    yield "url", quote(secret, safe="", errors="replace")
    yield "path", quote(secret, errors="replace")
    yield "json", json.dumps(secret)[1:-1]
    yield "json utf-8", json.dumps(secret, ensure_ascii=False)[1:-1]
    yield "repr", repr(secret)[1:-1]
    yield (
        "repr in quotes",
        repr(secret + '"')[1:-2],
    )  # As inside a longer text: its other quotes decide which are escaped.
    yield from _base64_forms(secret.encode("utf-8", "replace"))


def _base64_forms(secret: bytes) -> Iterator[tuple[str, str]]:
    """What of the base64 text stays the same wherever in the encoded bytes the secret stands."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret).decode()
        first = -(-shift * 8 // 6)
        last = (shift + len(secret)) * 8 // 6
        yield f"base64 {shift}", encoded[first:last]
        yield f"base64 url {shift}", encoded[first:last].translate(str.maketrans("+/", "-_"))

import ast
import base64
import itertools
import json
import string
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.domain.masking import (
    MASK,
    SHORTEST_SECRET,
    Found,
    KnownSecret,
    SecretFinder,
    SecretMask,
    known_secrets,
    label_of,
    replaced,
    secrets_in,
    shapes_in,
)

KEY = "Xq7/+w'z\"9\\Lm%&é"


def test_a_known_secret_is_masked_wherever_it_stands() -> None:
    assert SecretMask(["hunter22"])("hunter22, (hunter22) and hunter22hunter22") == "***, (***) and ******"


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    assert SecretMask(["abcdefgh", "abcdefgh-ijkl"])("abcdefgh-ijkl abcdefgh") == "*** ***"


def test_a_secret_is_known_without_the_blanks_around_it() -> None:
    assert SecretMask([" hunter22\n"])("hunter22") == MASK


def test_a_broken_secret_is_masked_in_its_pieces_too() -> None:
    mask = SecretMask(["firsthalf\nsecondhalf"])
    assert mask("firsthalf and secondhalf") == "*** and ***"
    assert SecretMask(["12345678\nabcdefg"])("12345678 and abcdefg") == "*** and abcdefg"


@pytest.mark.parametrize("value", ["", "test", "ollama", "1234567"])
def test_a_value_too_short_to_be_a_secret_is_left_alone(value: str) -> None:
    text = f"a {value} b"
    assert SecretMask([value])(text) == text


def test_without_secrets_an_ordinary_text_stays_as_it_is() -> None:
    text = "The task-force's keynote: passwords are secret. See https://a.example/x@y and risk-averse people."
    assert SecretMask()(text) == text


def test_a_likely_secret_is_known_by_its_look() -> None:
    cases: list[tuple[str, str]] = [
        ("Incorrect key: sk-proj-abc_DEF-123", "Incorrect key: ***"),
        ("rk-12345678 pk-12345678", "*** ***"),
        (r"line\nsk-12345678", r"line\n***"),
        ("Authorization: Bearer abc.def~ghi", "Authorization: Bearer ***"),
        ("proxy said basic dXNlcjpwYXNz", "proxy said basic ***"),
        ("api_key=abcd1234&x=1", "api_key=***&x=1"),
        ("OPENAI_API_KEY: abcd1234", "OPENAI_API_KEY: ***"),
        ('{"api-key": "abcd1234", "n": 1}', '{"api-key": "***", "n": 1}'),
        (r"{\"password\":\"abcd1234\"}", r"{\"password\":\"***\"}"),
        ("client_secret = 'abcd1234'", "client_secret = '***'"),
        ("access_token=abcd1234;", "access_token=***;"),
        ("http://user:pa55@proxy.example:8080/x", "http://***@proxy.example:8080/x"),
        ("https://token@git.example", "https://***@git.example"),
    ]
    for text, masked in cases:
        assert SecretMask()(text) == masked


def test_a_long_text_is_masked_in_linear_time() -> None:
    cases: list[str] = [
        "a-" * 200_000,
        "://" * 100_000,
        "://a:" * 100_000,
        "sk-" * 100_000,
        "secret " * 100_000,
        "secret=" * 100_000,
        "basic " * 100_000,
        "-eyJ" * 100_000,
        "eyJabcdefgh." * 50_000,
        "-----BEGIN PRIVATE KEY-----\n" * 20_000,
        "-----BEGIN PRIVATE KEY-----" + " A" * 200_000,
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 400_000,
    ]
    for text in cases:
        started = time.thread_time()
        SecretMask([KEY])(text)
        assert time.thread_time() - started < 5


def test_a_variable_with_a_telling_name_is_a_secret() -> None:
    cases: list[str] = [
        "MY_KEY",
        "Some_Token",
        "THE_SECRET_ONE",
        "db_password",
        "a_passwd",
        "MY_CREDENTIALS",
        "MY_VENDOR",
    ]
    for name in cases:
        environ = {name: "0123456789", "PATH": "/usr/local/bin", "X": "something"}
        assert known_secrets(environ, key_variable="MY_VENDOR") == [KnownSecret(name, "0123456789")]
        assert secrets_in(environ, key_variable="MY_VENDOR", base_url="") == ["0123456789"]


def test_passwords_inside_urls_are_found_as_written_and_as_sent() -> None:
    environ = {
        "HTTPS_PROXY": "http://me:p%40ss%2Fword@proxy.example:8080",
        "BAD_URL": "http://[",
        "X": "http://a:bcdefghi@c",
    }
    assert secrets_in(environ, key_variable="K", base_url="") == ["p%40ss%2Fword", "p@ss/word"]


def test_the_password_of_a_proxy_does_not_show_in_the_header_made_of_it() -> None:
    environ = {"HTTPS_PROXY": "http://me:p%40ss%2Fword@proxy.example"}
    mask = SecretMask(secrets_in(environ, key_variable="OPENAI_API_KEY", base_url=""))
    header = base64.b64encode(b"me:p@ss/word").decode()
    assert base64.b64encode(b"p@ss/word")[2:-4].decode() not in mask(header)
    assert MASK in mask(f"sent {header}")


def in_base64(before: str, secret: str, after: str) -> tuple[str, str]:
    """The whole text in base64, and what of it depends on the secret alone."""
    start, end = len(before.encode()), len((before + secret).encode())
    encoded = base64.b64encode((before + secret + after).encode()).decode()
    return encoded, encoded[-(-start * 8 // 6) : end * 8 // 6]


FORMS: dict[str, Callable[[str, str, str], tuple[str, str]]] = {
    "plain": lambda before, secret, after: (before + secret + after, secret),
    "url": lambda before, secret, after: (quote(before + secret + after, safe=""), quote(secret, safe="")),
    "url path": lambda before, secret, after: (quote(before + secret + after), quote(secret)),
    "json": lambda before, secret, after: (json.dumps(before + secret + after), json.dumps(secret)[1:-1]),
    "json in utf-8": lambda before, secret, after: (
        json.dumps(before + secret + after, ensure_ascii=False),
        json.dumps(secret, ensure_ascii=False)[1:-1],
    ),
    "base64": in_base64,
}
# The mask is made of stars, so no text can be kept free of a secret made of them.
SECRETS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="*"),
    min_size=SHORTEST_SECRET,
    max_size=40,
)
TEXTS = st.text(string.printable + "éあ😀", max_size=30)


@pytest.mark.parametrize("form", FORMS)
@given(before=TEXTS, secret=SECRETS, after=TEXTS)
def test_a_planted_secret_never_survives(form: str, before: str, secret: str, after: str) -> None:
    text, planted = FORMS[form](before, secret, after)
    assert planted in text
    assert planted not in SecretMask([secret])(text)


@given(before=TEXTS, secret=SECRETS, after=TEXTS)
def test_a_planted_secret_never_survives_in_a_repr(before: str, secret: str, after: str) -> None:
    # Read back, so that no spelling of the secret goes unnoticed.
    masked = SecretMask([secret])(repr(f"{before} {secret} {after}"))
    assert secret not in ast.literal_eval(masked)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_masked_at_every_alignment(encode: Callable[[bytes], bytes]) -> None:
    for before, after in itertools.product(range(3), range(3)):
        text = encode(b"\xff" * before + KEY.encode() + b"\xff" * after).decode()
        masked = SecretMask([KEY])(text)
        # A letter at each end also depends on the neighbour, and stays.
        assert MASK in masked
        assert len(text) - len(masked) + len(MASK) >= len(KEY.encode()) * 8 // 6 - 1


def test_a_secret_in_json_is_masked_from_its_first_to_its_last_letter() -> None:
    secret = 'pässwort"0123456789ü'
    for is_ascii in (True, False):
        assert SecretMask([secret])(json.dumps(secret, ensure_ascii=is_ascii)) == f'"{MASK}"'


def test_a_secret_that_is_not_utf_8_is_masked_too() -> None:
    assert SecretMask(["key\udcff-0123456789"])("a key\udcff-0123456789 here") == f"a {MASK} here"


def test_the_rest_of_a_labelled_text_is_masked_without_looking_for_tokens() -> None:
    assert SecretMask(["hunter22"]).rest("hunter22 password=abcd1234 ‹x›") == "*** password=*** ‹x›"


@pytest.mark.parametrize("around", ["", "'", '"', "'\""])
def test_a_secret_with_quotes_is_masked_in_a_repr_whatever_quotes_stand_around_it(around: str) -> None:
    for secret in ("abc'defgh'", 'abc"\x01defgh"', "abc'def\"gh", "abc\\defgh"):
        masked = SecretMask([secret])(repr(f"{around} {secret} {around}"))
        assert ast.literal_eval(masked) == f"{around} {MASK} {around}"


@pytest.mark.parametrize("url", ["http://user:s3cr3t/Passw0rd@api.example/v1", "http://user:pa?ss#w0rd@api.example"])
def test_a_password_that_no_url_allows_is_masked_too(url: str) -> None:
    secret = url.removeprefix("http://user:").rpartition("@")[0]
    assert SecretMask()(f"found {url}").startswith("found http://user:***@api.example")
    by_value = SecretMask(secrets_in({}, key_variable="OPENAI_API_KEY", base_url=url))
    assert by_value(f"the password is {secret}") == "the password is ***"


def test_a_name_in_a_path_is_no_password() -> None:
    assert SecretMask()("https://medium.example/@name/post") == "https://medium.example/@name/post"


# ---------------------------------------------------------------------------------------------------------------------
# What is found, and what it is called

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJ0123456789abcd.abcd0123456789-_abcd"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nq8h3Zk==\n-----END RSA PRIVATE KEY-----"
PGP = (
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQVYBGcAAAABDAC0q1x0123456789abcdef\nabcd0123\n=Ab1d\n"
    "-----END PGP PRIVATE KEY BLOCK-----"
)
LOCKED_PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\nMIIE9\n"
    "-----END RSA PRIVATE KEY-----"
)
SHAPES = {
    "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw": "‹AIza…, 39 characters›",
    "sk-proj-0123456789abcdefgh": "‹sk-…, 26 characters›",
    "sk_live_0123456789abcdefgh": "‹sk_live_…, 26 characters›",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345": "‹ghp_…, 40 characters›",
    "github_pat_0123456789abcdefghijAB": "‹github_pat_…, 33 characters›",
    "glpat-0123456789abcdefghij": "‹glpat-…, 26 characters›",
    "xoxb-0123456789-abcdefghij": "‹xoxb-…, 26 characters›",
    "AKIA0123456789ABCDEF": "‹AKIA…, 20 characters›",
    "SG.0123456789abcdefghij.0123456789abcdefghij": "‹SG.…, 44 characters›",
    JWT: f"‹JWT, {len(JWT)} characters›",
    PEM: f"‹private key, {len(PEM)} characters›",
    json.dumps(PEM)[1:-1]: f"‹private key, {len(PEM) + 3} characters›",
    PEM.replace("\n", " "): f"‹private key, {len(PEM)} characters›",
    LOCKED_PEM: f"‹private key, {len(LOCKED_PEM)} characters›",
    PGP: f"‹private key, {len(PGP)} characters›",
}


def shown(finder: SecretFinder, text: str) -> str:
    for one in reversed(finder.find(text)):
        text = text[: one.start] + one.label + text[one.end :]
    return text


def test_a_token_of_a_known_shape_is_found_and_called_what_it_is() -> None:
    for token in SHAPES:
        for around in ("{}", "key={}, and more", '"{}"', "({})", r"\n{}", "https://{}@git.example/x"):
            assert shown(SecretFinder(), around.format(token)) == around.format(SHAPES[token])
            assert token not in SecretMask()(around.format(token))


PREFIXES = (
    *("sk-", "rk-", "pk-", "sk_live_", "rk_test_", "pk_live_", "whsec_", "xai-", "AIza", "GOCSPX-", "ya29."),
    *("github_pat_", "glpat-", "pypi-", "xoxa-", "xoxb-", "xoxc-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
    *("gho_", "ghp_", "ghs_", "ghu_", "ghr_", "npm_", "hf_", "gsk_", "dop_v1_"),
)


def test_every_kind_of_token_is_found_by_its_beginning_alone() -> None:
    for prefix in PREFIXES:
        for token in (f"{prefix}012345678a", f"{prefix}abcdefghi0"):
            assert shown(SecretFinder(), f"a {token} b") == f"a ‹{prefix}…, {len(token)} characters› b"
            assert SecretMask()(f"a {token} b") == "a *** b"
        assert SecretFinder().find(f"a {prefix}01234567 b") == []
        assert SecretFinder().find(f"a {prefix}abcdefghij b") == []


@pytest.mark.parametrize("prefix", ["AKIA", "ASIA"])
def test_the_id_of_a_key_has_its_exact_length(prefix: str) -> None:
    assert shown(SecretFinder(), f"{prefix}ABCDEFGHIJKLMNO1 b") == f"‹{prefix}…, 20 characters› b"
    for other in ("ABCDEFGHIJKLMN1", "ABCDEFGHIJKLMNOP1", "ABCDEFGHIJKLMNOP"):
        assert SecretFinder().find(f"{prefix}{other} b") == []


@pytest.mark.parametrize("prefix", ["sk-", "rk-", "pk-"])
def test_a_log_hides_also_what_only_begins_like_a_key(prefix: str) -> None:
    assert SecretMask()(f"a {prefix}abcdefgh b") == "a *** b"
    assert SecretMask()(f"a {prefix}abcdefg b") == f"a {prefix}abcdefg b"


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://:x@[::1]/", "https://:‹password, 1 character›@[::1]/"),
        ("redis://me:p@ss@db.example", "redis://me:‹password, 4 characters›@db.example"),
    ],
)
def test_a_password_in_a_url_is_found(url: str, label: str) -> None:
    assert shown(SecretFinder(), url) == label


def test_nothing_that_could_do_something_is_hidden_by_its_look() -> None:
    cases: list[str] = [
        "ls --password=$(touch x)",
        "sk-$(reboot)0123456789",
        "rm sk-example-of-a-package",
        "https://me:$(reboot)@host.example/",
        "https://me:a b@host.example/",
        "https://host.example:8080/@name",
        "https://git@host.example/x",
        "eyJhbGci.x",
        "-----BEGIN PRIVATE KEY-----\nrm -rf /\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nreboot\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nDROP TABLE USERS\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nDROP\nTABLE\nUSERS\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- MIIEpAIBAAKCAQEA7 DROP TABLE USERS -----END PRIVATE KEY-----",
        "ghp_delete_all_users_1 npm_evil_package_1 hf_dataset_version2 ASIA_customers_2024 ASIACUSTOMERS2024",
        "SG.customers_2024",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqh0\n-----END PUBLIC KEY-----",
        "token_amount=9000000, secretary, Bearer abcdefghijkl",
    ]
    for text in cases:
        assert SecretFinder().find(text) == []


def test_a_log_shows_what_a_shell_would_run_after_a_word_for_a_secret() -> None:
    for text in (
        "ls --password=$(touch x)",
        "ls --password=abc`touch` x",
        'secret: "x$(touch y)"',
        "https://me:$(reboot)@host.example/",
        "https://`reboot`@host.example/",
    ):
        assert SecretMask()(text) == text
    assert SecretMask()("ls --password=hunter2 $(touch x)") == "ls --password=*** $(touch x)"


def test_a_known_secret_is_called_by_its_name_in_every_form() -> None:
    finder = SecretFinder([KnownSecret("MY_KEY", KEY), KnownSecret("SHORT_KEY", "abc")])
    for encode in (str, lambda text: quote(text, safe=""), lambda text: json.dumps(text)[1:-1]):
        written = encode(KEY)
        (found,) = finder.find(f"say {written}, abc")
        assert (found.start, found.end, found.label) == (4, 4 + len(written), "‹MY_KEY›")
        assert finder.value_of(found.name, found.form) == written
    assert finder.value_of("MY_KEY", "no such form") is None


def test_of_two_names_for_one_value_the_first_is_shown() -> None:
    finder = SecretFinder([KnownSecret("A_KEY", "hunter22"), KnownSecret("B_KEY", "hunter22")])
    assert shown(finder, "hunter22") == "‹A_KEY›"


def test_a_known_token_is_called_by_its_name_and_not_by_its_shape() -> None:
    token = "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"
    finder = SecretFinder([KnownSecret("the key", token)])
    assert shown(finder, f"x {token}") == "x ‹the key›"
    assert finder.find(f"x {token}") == [Found(2, 2 + len(token), "‹the key›", "the key", "plain")]


def test_what_was_taken_out_is_known_by_the_names_that_saved_runs_have_for_it() -> None:
    finder = SecretFinder([KnownSecret("K", KEY), KnownSecret("K", "hunter22")])
    forms = ["plain", "url", "path", "json", "json utf-8", "repr", "repr in quotes"]
    written = [KEY, quote(KEY, safe=""), quote(KEY), json.dumps(KEY)[1:-1], json.dumps(KEY, ensure_ascii=False)[1:-1]]
    written += [repr(KEY)[1:-1], repr(KEY + '"')[1:-2]]
    assert [finder.value_of("K", form) for form in forms] == written
    for shift in range(3):
        standard, safe = finder.value_of("K", f"base64 {shift}"), finder.value_of("K", f"base64 url {shift}")
        assert standard
        assert safe
        assert standard in base64.b64encode(b"x" * shift + KEY.encode()).decode()
        assert safe in base64.urlsafe_b64encode(b"x" * shift + KEY.encode()).decode()
    assert finder.value_of("K", "plain'") == "hunter22"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("sk-0123456789abcdef", "sk-0123456789abcdef-and-more"),
        ("0123456789abcdef", "sk-0123456789abcdef"),
        ("0123456789abcdef0123 xyz", "sk-0123456789abcdef0123 xyz"),
    ],
)
def test_secrets_that_overlap_are_one(secret: str, text: str) -> None:
    (found,) = SecretFinder([KnownSecret("X", secret)]).find(f"a {text} b")
    assert (found.start, found.end) == (2, 2 + len(text))
    assert (found.name, found.form) == ("", "")


def test_several_secrets_are_found_in_order() -> None:
    found = SecretFinder([KnownSecret("A", "hunter22")]).find("hunter22hunter22 and https://a:bc@d")
    assert found == [
        Found(0, 8, "‹A›", "A", "plain"),
        Found(8, 16, "‹A›", "A", "plain"),
        Found(31, 33, "‹password, 2 characters›"),
    ]


def test_a_password_inside_an_address_is_called_by_its_variable() -> None:
    cases: list[str] = ["DATABASE_URL", "MONGO_URI", "PG_DSN", "AGENTS_STORE", "AMQP_CONNECTION", "https_proxy"]
    for name in cases:
        found = known_secrets({name: "postgresql://me:hun%21ter22@db.example/x"})
        assert found == [KnownSecret(f"password in {name}", password) for password in ("hun%21ter22", "hun!ter22")]
        finder = SecretFinder(found)
        for password in ("hun%21ter22", "hun!ter22"):
            (one,) = finder.find(f"say {password}")
            assert one.label == f"‹password in {name}›"
            assert finder.value_of(one.name, one.form) == password


def test_the_password_in_the_base_url_is_a_secret() -> None:
    found = known_secrets({}, base_url="https://u:base-pass@api.example/v1")
    assert found == [KnownSecret("password in the base URL", "base-pass")]


def test_a_label_counts_characters() -> None:
    assert label_of("x", 1) == "‹x, 1 character›"
    assert label_of("x", 0) == "‹x, 0 characters›"


# ---------------------------------------------------------------------------------------------------------------------
# Where a token stands

TOKEN = "sk-proj-a1B2c3D4e5F6g7H8"
A_JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"


def test_hosts_and_file_names_are_never_hidden() -> None:
    cases: list[str] = [
        "https://eyJzdGF0cw.attacker.online/collect",
        "https://eyJhbGciOiJIUzI1NiJ9.attacker.online/collect",
        "eyJhbGciOiJIUzI1NiJ9.attacker.online",
        "eyJhbGciOiJIUzI1NiJ9.cdn.attacker.online:443",
        "sk-1cdnassets.attackersite.technology",
        "https://ghp_0123456789abcdef:8080/x",
        "https://sk-1cdnassets.attackersite.technology/x",
        "SG.a1bcdefghij.technology",
        "glpat-a1bcdefghij.01.community",
        f"/tmp/{TOKEN}",
        f"./{TOKEN}.txt",
        f"{TOKEN}.txt",
        f"C:\\Users\\{TOKEN}",
        f"file:///tmp/{TOKEN}",
        "https://evil.example?:DATA@good.example/",
        "https://evil.example#:DATA@good.example/",
        "https://evil.example/:DATA@good.example/",
        "https://evil.example\\:DATA@good.example/",
        "https://evil.example:443/DATA@good.example/",
    ]
    for text in cases:
        assert shapes_in(text) == []
        assert SecretMask()(f"go to {text} now") == f"go to {text} now"


def test_a_token_is_hidden_where_it_stands_alone_or_is_a_whole_part_of_a_url() -> None:
    cases: list[tuple[str, str]] = [
        (TOKEN, "‹sk-…, 24 characters›"),
        (f"see {TOKEN}.", "see ‹sk-…, 24 characters›."),
        (f"key={TOKEN}; ", "key=‹sk-…, 24 characters›; "),
        (f'{{"a": "{TOKEN}\\n"}}', '{"a": "‹sk-…, 24 characters›\\n"}'),
        (f"https://h/v1/{TOKEN}/x", "https://h/v1/‹sk-…, 24 characters›/x"),
        (f"(https://h/{TOKEN}).", "(https://h/‹sk-…, 24 characters›)."),
        (f"https://h/{TOKEN}X", "https://h/‹sk-…, 25 characters›"),
        (f"https://h?a=1&key={TOKEN}&b=2", "https://h?a=1&key=‹sk-…, 24 characters›&b=2"),
        (f"https://h?{TOKEN}", "https://h?‹sk-…, 24 characters›"),
        (f"https://h#access_token={TOKEN}", "https://h#access_token=‹sk-…, 24 characters›"),
        (f"https://{TOKEN}@h/x", "https://‹sk-…, 24 characters›@h/x"),
        ("https://me:s3cret@h/x", "https://me:‹password, 6 characters›@h/x"),
        (f"Bearer {A_JWT}", "Bearer ‹JWT, 84 characters›"),
        (f"https://h/?token={A_JWT}", "https://h/?token=‹JWT, 84 characters›"),
    ]
    for text, shown in cases:
        assert replaced(text, shapes_in(text)) == shown
        assert TOKEN not in SecretMask()(text)


def test_without_an_algorithm_in_its_header_or_with_four_parts_it_is_no_jwt() -> None:
    assert shapes_in(A_JWT.replace(".", ".more.", 1)) == []
    assert shapes_in(A_JWT.replace("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0")) == []
    assert shapes_in(A_JWT.replace("eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ")) == []


@given(st.text(string.ascii_letters + string.digits, min_size=12, max_size=12))
def test_any_letter_may_stand_in_a_token_of_a_url(letters: str) -> None:
    token = f"sk-1{letters}"
    for text in (f"https://h/v1/{token}/x", f"https://h?a=1&key={token}&b=2", f"https://h#key={token};b=2"):
        assert replaced(text, shapes_in(text)) == text.replace(token, "‹sk-…, 16 characters›")


def test_a_signed_or_encrypted_jwt_is_found_by_its_header_of_any_length() -> None:
    for header in ({"alg": "none"}, {"alg": "HS256"}, {"alg": "ES256K"}):
        encoded = base64.urlsafe_b64encode(json.dumps(header, separators=(",", ":")).encode()).decode().rstrip("=")
        for rest in ("eyJzdWIiOiIxMjM0In0", "key.initialization.ciphertext"):
            token = f"{encoded}.{rest}.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
            assert replaced(token, shapes_in(token)) == f"‹JWT, {len(token)} characters›"


def test_a_finder_knows_the_labels_that_it_may_give() -> None:
    assert SecretFinder([KnownSecret("A", "hunter22"), KnownSecret("B", "hunter33")]).labels == {"‹A›", "‹B›"}


def test_very_many_urls_and_tokens_take_no_longer_than_others() -> None:
    text = f"https://h/x {TOKEN} " * 20_000
    assert len(shapes_in(text)) == 20_000

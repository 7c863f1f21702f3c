"""What `mutants` changes, which tests must notice, and which changes no test can notice."""

from pathlib import Path
from typing import NamedTuple

PACKAGE = Path("src") / "openai_responses_mcp"
GATE = PACKAGE / "gate"


class Module(NamedTuple):
    path: Path
    tests: tuple[str, ...]
    test_seconds: int = 20
    words: tuple[str, ...] = ()
    """Tables of sentences for people, which are not changed."""


_DISPATCHING = ("dispatch", "dispatch_any_order", "eras", "progress", "calling", "tasks")
_GATE = "tests/gate/test_"
_POLICY = "tests/gate/policy/test_"
_AUDIT = "tests/gate/audit/test_"
_APPROVALS = "tests/gate/approvals/test_"
_SECRETS = "tests/gate/secrets/test_"
_GUARD = "tests/guard/test_"
_CONTRACTS = "tests/contracts/guarded/test_"
_RUNS = "tests/agents/runs/test_"
_RUN_GUARD = (
    f"{_RUNS}ledger.py",
    f"{_RUNS}budgets_of_runs.py",
    f"{_GATE}deciding_again.py",
    f"{_RUNS}ledger_any_order.py",
)
_VOICES = tuple(f"{_GATE}{name}.py" for name in ("gate", "policy_voice", "standing_voice"))
MODULES = {
    "cancellation": Module(PACKAGE / "domain/cancellation.py", ("tests/domain/test_cancellation.py",)),
    "citations": Module(
        PACKAGE / "domain/citations.py",
        ("tests/domain/test_citations.py", "tests/commands/test_showing.py"),
    ),
    "masking": Module(PACKAGE / "domain/masking.py", ("tests/domain/test_masking.py",)),
    "domain.jsonrpc": Module(
        PACKAGE / "domain/jsonrpc.py",
        (
            *(f"tests/{name}.py" for name in ("domain/test_jsonrpc", "server/test_jsonrpc", "server/test_dispatch")),
            *("tests/server/test_eras.py", f"{_GUARD}messages.py"),
        ),
    ),
    "dispatcher": Module(
        PACKAGE / "server/dispatch.py",
        tuple(f"tests/server/test_{name}.py" for name in _DISPATCHING),
        60,
    ),
    "jsonrpc": Module(PACKAGE / "server/jsonrpc.py", ("tests/server/test_jsonrpc.py",)),
    "framer": Module(PACKAGE / "adapters/stdio/framing.py", ("tests/adapters/stdio/test_framing.py",), 8),
    "gate.budgets": Module(GATE / "budgets.py", (f"{_GATE}budgets.py", f"{_GUARD}call_keeper.py")),
    "runs.judging": Module(PACKAGE / "agents/runs/judging.py", _RUN_GUARD),
    "gate.safety_gate": Module(GATE / "safety_gate.py", _VOICES),
    "gate.replaying": Module(GATE / "replaying.py", (f"{_GATE}replaying.py",)),
    "gate.calls": Module(
        GATE / "calls.py", (f"{_GATE}calls.py", *_VOICES, f"{_RUNS}ledger.py", f"{_GUARD}call_keeper.py")
    ),
    "gate.clock": Module(
        GATE / "clock.py", (f"{_APPROVALS}controller.py", f"{_CONTRACTS}clock.py", f"{_CONTRACTS}presence_store.py")
    ),
    "gate.definitions": Module(
        GATE / "definitions.py",
        (
            f"{_GATE}definitions.py",
            "tests/agents/mcp/test_gateway.py",
            f"{_CONTRACTS}definition_pins.py",
            f"{_GUARD}swapped_definitions.py",
            f"{_GUARD}call_keeper.py",
        ),
    ),
    "gate.errors": Module(
        GATE / "errors.py",
        (f"{_GATE}calls.py", "tests/agents/test_models.py", f"{_APPROVALS}controller.py", f"{_GATE}guardrails.py"),
        words=("CODES",),
    ),
    "gate.reasons": Module(
        GATE / "reasons.py",
        (
            *(f"{_GATE}{name}.py" for name in ("reasons", "replaying", "suggesting", "budgets")),
            *_VOICES,
            f"{_APPROVALS}standing.py",
            f"{_GUARD}notifying.py",
        ),
        words=(
            *("_RECORDED", "_SHOWN", "_RISK_BY_RULE", "_IN_DOUBT", "_WOULD_ALLOW", "_OWN_WORDS"),
            *("_NOTICE", "_UNITS", "_WINDOWS", "_STANDING"),
        ),
    ),
    "gate.stores": Module(
        GATE / "stores.py", (f"{_CONTRACTS}run_state_store.py", f"{_CONTRACTS}start_book.py", f"{_GUARD}parts.py")
    ),
    "gate.guardrails": Module(GATE / "guardrails.py", (f"{_GATE}guardrails.py",)),
    "gate.json_values": Module(
        GATE / "json_values.py",
        (
            *(f"{_GATE}{name}.py" for name in ("json_values", "guardrails")),
            *(f"{_POLICY}{name}.py" for name in ("fitting", "argument_names")),
        ),
    ),
    "gate.call_table": Module(
        GATE / "call_table.py", (f"{_GATE}call_states.py", *_RUN_GUARD, "tests/agents/test_runner.py")
    ),
    "runs.ledger": Module(PACKAGE / "agents/runs/ledger.py", _RUN_GUARD),
    "policy.argument_names": Module(GATE / "policy/argument_names.py", (f"{_POLICY}argument_names.py",)),
    "policy.checking": Module(GATE / "policy/checking.py", (f"{_POLICY}checking.py",)),
    "policy.fitting": Module(GATE / "policy/fitting.py", (f"{_POLICY}fitting.py", f"{_POLICY}reading.py")),
    "policy.rules": Module(
        GATE / "policy/rules.py",
        (
            *(f"{_POLICY}{name}.py" for name in ("profiles", "reading", "checking")),
            *(f"{_GATE}{name}.py" for name in ("gate", "policy_voice")),
        ),
    ),
    "policy.reading": Module(GATE / "policy/reading.py", (f"{_POLICY}reading.py",)),
    "gate.suggesting": Module(GATE / "suggesting.py", (f"{_GATE}suggesting.py",)),
    "policy.ruling": Module(GATE / "policy/ruling.py", (f"{_POLICY}ruling.py",)),
    "approvals.decisions": Module(
        GATE / "approvals/decisions.py", (f"{_APPROVALS}decisions.py", f"{_APPROVALS}controller.py")
    ),
    "approvals.models": Module(
        GATE / "approvals/models.py",
        (
            *(f"{_APPROVALS}{name}.py" for name in ("controller", "standing", "decisions")),
            *(f"{_CONTRACTS}{name}.py" for name in ("approval_store", "standing_store")),
        ),
    ),
    "approvals.standing": Module(
        GATE / "approvals/standing.py", (f"{_APPROVALS}standing.py", f"{_GUARD}call_keeper.py")
    ),
    "approvals.controller": Module(
        GATE / "approvals/controller.py",
        (
            *(f"{_APPROVALS}{name}.py" for name in ("controller", "decisions")),
            f"{_CONTRACTS}decision_book.py",
            f"{_GUARD}call_keeper.py",
        ),
    ),
    "audit.archiving": Module(GATE / "audit/archiving.py", (f"{_AUDIT}archiving.py",)),
    "audit.records": Module(
        GATE / "audit/records.py",
        (*(f"{_AUDIT}{name}.py" for name in ("heads", "story", "log", "archiving")), f"{_CONTRACTS}audit_head.py"),
    ),
    "audit.log": Module(
        GATE / "audit/log.py",
        (*(f"{_AUDIT}{name}.py" for name in ("log", "acceptances", "archiving")), "tests/agents/test_composition.py"),
    ),
    "audit.verifying": Module(
        GATE / "audit/verifying.py", tuple(f"{_AUDIT}{name}.py" for name in ("story", "acceptances", "archiving"))
    ),
    "guard.asking": Module(
        PACKAGE / "guard/asking.py", (f"{_GUARD}call_keeper.py", f"{_GUARD}who_answers.py", f"{_GUARD}notifying.py")
    ),
    "guard.definitions": Module(
        PACKAGE / "guard/definitions.py", (f"{_GUARD}swapped_definitions.py", f"{_GUARD}call_keeper.py")
    ),
    "guard.given_replies": Module(PACKAGE / "guard/given_replies.py", (f"{_GUARD}given_replies.py",)),
    "guard.peers": Module(
        PACKAGE / "guard/peers.py", (f"{_GUARD}parts.py", f"{_GUARD}relay.py", f"{_GUARD}swapped_definitions.py")
    ),
    "guard.relay": Module(
        PACKAGE / "guard/relay.py",
        tuple(f"{_GUARD}{name}.py" for name in ("relay", "given_replies", "many_clients", "call_keeper")),
    ),
    "guard.call_keeper": Module(
        PACKAGE / "guard/call_keeper.py",
        tuple(f"{_GUARD}{name}.py" for name in ("call_keeper", "swapped_definitions", "given_replies", "who_answers")),
    ),
    "guard.gatekeeping": Module(
        PACKAGE / "guard/gatekeeping.py",
        (f"{_GUARD}gatekeeping.py", f"{_GUARD}call_keeper.py", f"{_GUARD}parts.py", f"{_GUARD}given_replies.py"),
    ),
    "guard.messages": Module(
        PACKAGE / "guard/messages.py",
        (f"{_GUARD}messages.py", f"{_GUARD}parts.py", f"{_GUARD}relay.py", f"{_GUARD}call_keeper.py"),
    ),
    "guard.questions": Module(
        PACKAGE / "guard/questions.py", (f"{_GUARD}parts.py", f"{_GUARD}call_keeper.py"), words=("_TITLES", "_WORDS")
    ),
    "secrets.masking": Module(GATE / "secrets/masking.py", (f"{_SECRETS}masking.py",)),
    "secrets.withholding": Module(GATE / "secrets/withholding.py", (f"{_SECRETS}withholding.py",)),
}

# Modules of the rooms of which everything is changed, and why these are not.
UNCHANGED = {
    **{
        PACKAGE / f"guard/{name}.py": "starts, wires or sets up the guard; no call passes through it"
        for name in (
            *("client_files", "command_line", "composition", "doctor", "lifetime"),
            *("opened_gate", "over_http", "remote", "rewriting", "servers", "setup", "setup_plans"),
        )
    },
}

# By module, line of code as it stands, and change: why no test can or need tell the difference.
KNOWN_SURVIVORS: dict[tuple[str, str, str], str] = {
    **{
        ("guard.relay", line, change): reason
        for line, change, reason in (
            ("MOST_OPEN_AT_SERVER = 20_000", "20000 to 20001", "where exactly the limit lies does not matter"),
            ("MOST_OPEN_AT_CLIENT = 1_000", "1000 to 1001", "where exactly the limit lies does not matter"),
            ("self.moves = 0", "0 to 1", "only compared with what it was before"),
            ("self.moves += 1", "Add to Sub", "only compared with what it was before"),
            ("self.moves += 1", "1 to 2", "only compared with what it was before"),
            (
                "if clock() - moved_at > patience_seconds() or clock() - began > _MOST_SECONDS_TO_PASS_ON:",
                "Gt to GtE",
                "no clock is that exact",
            ),
        )
    },
    **{
        ("guard.call_keeper", line, change): reason
        for line, change, reason in (
            ("_MOST_TASKS = 1_000", "1000 to 1001", "where exactly the limit lies does not matter"),
            ("return False", "returns None", "only asked whether it is true"),
            ('outcome: StartOutcome = "changed"', "another text", "only asked whether it has started"),
        )
    },
    (
        "guard.given_replies",
        "if limit is not None and len(reply.wire) > limit and (size := _size_of(reply)) > limit:",
        "Gt to GtE",
    ): "a result is always shorter than the message that it comes in",
    ("guard.peers", "_MOST_LATE = 100", "100 to 101"): "where exactly the limit lies does not matter",
    ("guard.peers", "return False", "returns None"): "only asked whether it is true",
    **{
        ("guard.messages", line, change): reason
        for line, change, reason in (
            (
                '_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)',
                "False to True",
                "looks for cycles that are never there, and encodes the same",
            ),
            ("return False", "returns None", "only asked whether it is true"),
            ('return ""', "returns None", "only asked whether it is empty"),
            ('self._revision = ""', "another text", "a client that has declared nothing is not asked anyway"),
        )
    },
    **{
        ("guard.definitions", line, change): reason
        for line, change, reason in (
            *(
                (line, change, "only remembers more hashes, or fewer")
                for line, change in (
                    ("_MOST_KEPT = 3", "3 to 4"),
                    ("self._hashed[key] = [*kept[-_MOST_KEPT + 1 :], (stable, pin)]", "Add to Sub"),
                    ("self._hashed[key] = [*kept[-_MOST_KEPT + 1 :], (stable, pin)]", "1 to 2"),
                )
            ),
            ("return {}", "returns None", "only asked whether there are any"),
            ("if read is None or read[0] is not entry:", "0 to 1", "reads the same definition again"),
            (
                "if len(canonical(entry)) > LONGEST_DEFINITION:",
                "Gt to GtE",
                "where exactly the limit lies does not matter",
            ),
            ("_ = task.cancelled() or task.exception()", "and/or", "only keeps asyncio from a warning"),
        )
    },
    **{
        ("guard.asking", line, change): reason
        for line, change, reason in (
            ('reason: str = ""', "another text", "only a refusal has a reason to look at"),
            (
                'way = "desk" if asked_at == "desk" else self._ways.way_for(question.params)',
                "another text",
                "whatever is none of the other ways is the desk",
            ),
            (
                'await self._submit(approval_id, PersonAnswer("allow_once", _BY_CLIENT) if is_quick else answer)',
                "another text",
                "a yes without terms is for once",
            ),
            ("self._working.add(task)", "call dropped", "only keeps the task from being collected"),
            ("task.add_done_callback(self._working.discard)", "call dropped", "only lets the task be collected"),
        )
    },
    **{
        ("guard.questions", line, change): reason
        for line, change, reason in (
            ("_MOST_REMEMBERED = 10_000", "10000 to 10001", "where exactly the limit lies does not matter"),
            ('approval_id: str = ""', "another text", "set before it is read"),
            ("self._key = secrets.token_hex(32)", "32 to 33", "longer is as good"),
            ('self._prefix = f"guard-{secrets.token_hex(8)}:"', "8 to 9", "longer is as good"),
            ('self._prefix = f"guard-{secrets.token_hex(8)}:"', "another text", "any prefix is as good"),
            ("number = secrets.token_hex(16)", "16 to 17", "longer is as good"),
            ('return "", ""', "another text", "a seal without a number is not looked at"),
            (
                'return (number, seal) if number.isascii() and seal.isascii() else ("", "")',
                "another text",
                "a seal without a number is not looked at",
            ),
        )
    },
    (
        "guard.questions",
        'return digest("continued", tool.name, tool.definition_hash, object_in(params.get("arguments")), state)',
        "another text",
    ): "tells this hash from others, of which there are none here",
    (
        "citations",
        'return item if _ISO_DATE.search(_URL.sub("", item)) else f"{item.rstrip()} ({today})"',
        "another text",
    ): "what stands on both sides of an address would have to be the halves of one date",
    ("citations", "_MOST_LINES = 1_000", "1000 to 1001"): "where exactly the limit lies does not matter",
    (
        "citations",
        'parts = urlsplit(url.replace("\\\\", "/"))',
        "another text",
    ): "only the host is looked at",
    ("citations", 'host = host.strip(".")', "another text"): "a host is in small letters",
    ("cancellation", "return False", "returns None"): "None is as false",
    (
        "dispatcher",
        '"Answers questions with sources, searching the web when needed. Use answer for most questions, answer_detailed for"',
        "another text",
    ): "the wording of the instructions",
    (
        "dispatcher",
        'Work = Callable[["Caller", Callable[[JsonObject], None]], Awaitable[JsonObject]]',
        "another text",
    ): "a name for the type checker",
    (
        "dispatcher",
        'message = f"{request.method} needs a client that declares {TASKS_EXTENSION}"',
        "another text",
    ): "the wording of an error that its code and data explain",
    ("audit.log", "break", "break dropped"): "it looks again, and finds the same",
    ("domain.jsonrpc", 'wire: bytes = b""', "other bytes"): "every reply is made with its bytes",
    (
        "jsonrpc",
        "check_circular=False,  # What we send is never circular, and looking takes time.",
        "False to True",
    ): "looks for cycles that are never there, and encodes the same",
    (
        "masking",
        'yield "url", quote(secret, safe="", errors="replace")',
        "another text",
    ): "a letter is never quoted anyway",
    (
        "masking",
        'def known_secrets(environ: Mapping[str, str], *, key_variable: str = "", base_url: str = "") -> list[KnownSecret]:',
        "another text",
    ): "an address without a password",
    ("masking", "return False", "returns None"): "None is as false",
    (
        "masking",
        "if not around or urls[around - 1].end() <= match.start():",
        "LtE to Lt",
    ): "no token begins right where a URL ends",
    ("masking", "for shift in range(3):", "3 to 4"): "four letters hold three bytes, so a shift by three is none",
    ("masking", "first = -(-shift * 8 // 6)", "8 to 9"): "the same for the shifts there are, 0 to 2",
    ("masking", "first = -(-shift * 8 // 6)", "6 to 7"): "the same for the shifts there are, 0 to 2",
    ("framer", "return _Step.NEED_MORE", "returns None"): "None means the same to the caller",
    ("framer", "NEED_MORE = 2", "2 to 3"): "a name with another number behind it",
    ("framer", "UNDECIDED = 4", "4 to 5"): "a name with another number behind it",
    ("framer", "self._searched = 0", "0 to 1"): "no line that is searched begins with its end",
    ("framer", "self._header_lines = 0", "0 to 1"): "set again with every header block",
    ("framer", "self._header_bytes = 0", "0 to 1"): "set again with every header block",
    ("framer", "self._body_bytes = 0", "0 to 1"): "set again with every body",
    (
        "framer",
        "if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer) and not self._has_ended:",
        "Lt to LtE",
    ): "waits for one byte more after a whole mark, and goes on in the same way",
    (
        "framer",
        "self._drop(blanks.end() if blanks else 0)",
        "0 to 1",
    ): "the pattern always matches; for the type checker",
    ("framer", "end = self._line_end(needs_newline=True)", "True to False"): "nothing can follow a last half header",
    (
        "framer",
        "is_all = len(self._buffer) <= within",
        "LtE to Lt",
    ): "whatever byte comes next is beyond what is looked at",
    ("framer", 'end -= self._buffer.endswith(b"\\n", 0, end)', "0 to 1"): "no line begins with its end",
    ("framer", 'end -= self._buffer.endswith(b"\\r", 0, end)', "0 to 1"): "no line begins with its end",
    (
        "gate.safety_gate",
        'STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}',
        "2 to 3",
    ): "the same order",
    (
        "approvals.standing",
        "is_id = is_text(standing_id) and len(standing_id) <= LONGEST_ID",
        "LtE to Lt",
    ): "no id is that long",
    (
        "approvals.standing",
        'async def _end(self, standing: StandingApproval, reason: str, now: str, comment: str = "", who: str = "") -> bool:',
        "another text",
    ): "only a person's end has a comment and a name to look at",
    ("approvals.standing", "return False", "returns None"): "only asked whether it is true",
    (
        "approvals.controller",
        "if not is_text(approval_id) or len(approval_id) > LONGEST_ID:",
        "Gt to GtE",
    ): "no approval has an id that long",
    (
        "approvals.controller",
        'if not compare_digest(record.binding or "", seal(token, record, record.request.status, record.expires_at)):',
        "another text",
    ): "no seal either",
    (
        "gate.safety_gate",
        '_ANY_STANDING = Reason("standing", "allow")',
        "another text",
    ): "only what it says is looked at, and it is never recorded",
    (
        "gate.json_values",
        'return "".join(letter for letter in plain if letter.isprintable() and letter != " ")',
        "another text",
    ): "the same text between the letters of every name",
    (
        "policy.ruling",
        'return (self._paths.anchor(base, "") or "") if base else ""',
        "another text",
    ): "the base is a whole path, so where a relative one would begin does not matter",
    **{
        ("policy.ruling", line, change): "where exactly the limit lies does not matter: such a path is found either way"
        for line, change in (
            ("_LONGEST_PATH = 4096", "4096 to 4097"),
            ('if len(text) > _LONGEST_PATH or "\\n" in text:', "Gt to GtE"),
        )
    },
    **{
        ("approvals.controller", line, "32 to 33"): "longer is as good, and the token is never shown"
        for line in (
            "token_hash=token_hash(secrets.token_urlsafe(32)),",
            "token, now = secrets.token_urlsafe(32), await self._now()",
        )
    },
    (
        "audit.records",
        "def announce(self, before: LogPlace, end: LogPlace, hash_at: HashAt, archived_to: int = 0) -> None:",
        "0 to 1",
    ): "a promise; what keeps it has a default of its own",
    (
        "audit.verifying",
        'for one in log.reasons or in_old_words(log.reason, "allow")',
        "another text",
    ): "only the ids are used",
    ("audit.log", '_T = TypeVar("_T")', "another text"): "a name for the type checker",
    ("audit.log", 'moment = _moment(before) or ""', "another text"): "for the type checker; a moment is always given",
    (
        "audit.log",
        'mode: AuditMode | Callable[[], AuditMode] = "best_effort",',
        "another text",
    ): "only asked whether it is required",
    **{
        ("secrets.masking", line, change): "a limit against endless work; where exactly it lies does not matter"
        for line, change in (
            ("MOST_STEPS = 100_000", "100000 to 100001"),
            ("if self._steps > MOST_STEPS:", "Gt to GtE"),
            ("self.count(1)", "1 to 2"),
            ("self._steps = 0", "0 to 1"),
        )
    },
    **{
        ("secrets.masking", line, change): reason
        for line, change, reason in (
            (
                'def __init__(self, environ: Mapping[str, str] | None = None, also: str = "") -> None:',
                "another text",
                "the name of a variable that is not there",
            ),
            ("return False", "returns None", "only asked whether it is true"),
            (
                "return self._at(number, [*in_order, *self._items]) if in_order else self._at(-1, self._items)",
                "1 to 2",
                "any number that is no place in a list",
            ),
        )
    },
    **{
        ("policy.checking", line, "returns None"): "only asked whether there is anything in it"
        for line in ("return False", 'return ""', "return []", "return False  # the exception, and then the rest")
    },
    **{
        ("gate.suggesting", line, "another text"): reason
        for line, reason in (
            ('comment: str = ""', "only the comment on a denial is read, and it is given"),
            (
                'self._home = paths.anchor("~", "") or ""',
                "home is a whole path wherever it is looked up from, and no path is below a home that is not known",
            ),
            (
                'if folder.count("/") < 2 or f"{self._home}/".startswith(f"{folder}/"):',
                "the folder ends before what is added",
            ),
            (
                'if rules and not any(rules.ruling(ToolDescription(call.tool, "mcp"), call.args) for call in allowed):',
                "the rule that is tried fits every tool",
            ),
            (
                'reason = str(by_rule[0].about.get("text", "")) if by_rule else ""',
                "what a rule says has its text, and only the comment on a denial is read",
            ),
            (
                'rules = self._rules_from([SuggestedRule("", ("*",), "deny", one)])',
                "the comment on a rule that is only tried",
            ),
        )
    },
    (
        "gate.suggesting",
        'comment = _calls(len(denied), "denied", len(denied) + len(allowed))',
        "Add to Sub",
    ): "either is the number of denied calls only where none was allowed",
    (
        "gate.suggesting",
        'return not any("\\ud800" <= letter <= "\\udfff" for letter in text)',
        "another text",
    ): "a letter is a single one",
    ("policy.fitting", "YES = 3", "3 to 4"): "the same order",
    ("policy.fitting", "return False", "returns None"): "only asked whether it is true",
    **{
        ("policy.fitting", line, "returns None"): "still a type that no other value has"
        for line in ("return float", "return dict")
    },
    **{
        ("policy.fitting", "at, glob_at, star_at, retry_at = 0, 0, -1, 0", change): reason
        for change, reason in (
            ("1 to 2", "any number below zero"),
            ("0 to 1", "where to try again is set with each star"),
        )
    },
    (
        "policy.checking",
        '_STRICTNESS: Mapping[RuleDecision | None, int] = {"allow": 0, "ask": 1, "deny": 2}',
        "2 to 3",
    ): "the same order",
    (
        "policy.checking",
        "further.update(range(place, len(second) + 1))",
        "1 to 2",
    ): "nothing fits behind the end",
    **{
        ("secrets.withholding", line, change): reason
        for line, change, reason in (
            ("MOST_SAVES = 1000", "1000 to 1001", "the test counts up to the constant"),
            ("number: str = field(default_factory=lambda: secrets.token_hex(16))", "16 to 17", "longer is as good"),
            ('names = (f"withheld {number}" for number in count(1))', "1 to 2", "any name that is free"),
            (
                'whole = found[0] if len(found) == 1 and found[0].end - found[0].start == len(key) else Found(0, len(key), "")',
                "another text",
                "a label that nobody sees",
            ),
            ("save.note((*path, name), 0, key, whole, is_key=True)", "0 to 1", "a key is put back as a whole"),
            ('if text.find("\\\\", span.start, span.end) < 0:', "Lt to LtE", "a literal begins behind its quote"),
            ('if text.find("\\\\", span.start, span.end) < 0:', "0 to 1", "a literal begins behind its quote"),
            ("return False", "returns None", "only asked whether it is true"),
            ('yield Found(0, len(text), "")', "another text", "a label that nobody sees"),
            (
                'yield from (Found(*match.span(), "") for match in re.finditer(re.escape(secret), text))',
                "another text",
                "a label that nobody sees",
            ),
            (
                'return (Found(*match.span(1), "") for match in _LITERAL.finditer(text))',
                "another text",
                "a label that nobody sees",
            ),
        )
    },
    (
        "gate.call_table",
        'return self._calls.get(call_id) or _call(Permit(call_id, "", ""), CallState.UNKNOWN)',
        "another text",
    ): "a hash that fits nothing either",
    ("gate.call_table", "return False", "returns None"): "only asked whether it is true",
    ("runs.ledger", '_T = TypeVar("_T")', "another text"): "a name for the type checker",
    **{
        ("policy.reading", line, "another text"): "a name for the type checker"
        for line in ('T = TypeVar("T")', 'V = TypeVar("V")', 'Name = TypeVar("Name", bound=str)')
    },
    **{
        ("policy.reading", line, change): "a policy with a problem is not used"
        for line, change in (
            ("return Policy()", "returns None"),
            ("return ()", "returns None"),
            ("return Rule(number, ())", "returns None"),
            ("return Budget(calls, per) if calls and per else None", "and/or"),
        )
    },
    **{
        (
            "policy.reading",
            'PolicyProfile("strict", 1, 5, (value,))  # type: ignore[arg-type]',
            change,
        ): "only the scope is looked at"
        for change in ("1 to 2", "5 to 6")
    },
    (
        "runs.judging",
        "risk = request.target_tool.own_risk if request.target_tool else 5",
        "5 to 6",
    ): "a request that is judged here always has its tool",
    ("runs.ledger", 'user_intent: str = "",', "another text"): "only a look has no user, and it asks no judge",
    (
        "runs.ledger",
        'budget = SessionBudget(self._budgets, self._clock, "", list)',
        "another text",
    ): "the id of no run, which has no budget",
    (
        "runs.ledger",
        'return LookingLedger("", self._gate, self._audit, self._masking, GateContext(), budget)',
        "another text",
    ): "the id of no run, which nothing is recorded under",
    **{
        ("runs.ledger", line, "True to False"): "there are always as many of one as of the other"
        for line in (
            "for (turn, _), request, asked in zip(planned, requests, questions, strict=True)",
            "[(request, decision) for request, (decision, _) in zip(requests, verdicts, strict=True)]",
            "asks = [self._asks(call, decision) for call, decision in zip(calls, decisions, strict=True)]",
            "for call, decision, is_asked, about_budgets in zip(calls, decisions, asks, questions, strict=True):",
        )
    },
}

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


EDGES = "tests/reliability/test_edges.py"
_DISPATCHING = ("dispatch", "dispatch_any_order", "eras", "progress", "calling")
_GATE = "tests/gate/test_"
_POLICY = "tests/gate/policy/test_"
_AUDIT = "tests/gate/audit/test_"
_APPROVALS = "tests/gate/approvals/test_"
_SECRETS = "tests/gate/secrets/test_"
_GUARD = "tests/guard/test_"
_CONTRACTS = "tests/contracts/guarded/test_"
_RUNS = "tests/agents/runs/test_"
_RUN_GUARD = (f"{_RUNS}ledger.py", f"{_GATE}deciding_again.py", f"{_RUNS}ledger_any_order.py")
_VOICES = tuple(f"{_GATE}{name}.py" for name in ("gate", "policy_voice", "standing_voice"))
MODULES = {
    "cancellation": Module(PACKAGE / "domain/cancellation.py", ("tests/domain/test_cancellation.py",)),
    "citations": Module(PACKAGE / "domain/citations.py", ("tests/domain/test_citations.py", EDGES)),
    "masking": Module(PACKAGE / "domain/masking.py", ("tests/domain/test_masking.py", EDGES)),
    "strict_json": Module(PACKAGE / "domain/strict_json.py", ("tests/domain/test_strict_json.py",)),
    "dispatcher": Module(
        PACKAGE / "server/dispatch.py",
        (*(f"tests/server/test_{name}.py" for name in _DISPATCHING), EDGES),
    ),
    "jsonrpc": Module(PACKAGE / "server/jsonrpc.py", ("tests/server/test_jsonrpc.py", EDGES)),
    "framer": Module(PACKAGE / "adapters/stdio/framing.py", ("tests/adapters/stdio/test_framing.py", EDGES), 8),
    "gate.budgets": Module(GATE / "budgets.py", (f"{_GATE}budgets.py",)),
    "runs.judging": Module(PACKAGE / "agents/runs/judging.py", _RUN_GUARD),
    "gate.deciding": Module(GATE / "deciding.py", _VOICES),
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
        ("tests/agents/test_models.py", f"{_APPROVALS}controller.py", f"{_AUDIT}log.py", f"{_GATE}rules.py"),
        words=("CODES",),
    ),
    "gate.reasons": Module(
        GATE / "reasons.py", (f"{_GATE}reasons.py", *_VOICES, f"{_GATE}replaying.py", f"{_GATE}suggesting.py")
    ),
    "gate.sentences": Module(
        GATE / "sentences.py",
        (
            f"{_GATE}reasons.py",
            f"{_GATE}budgets.py",
            f"{_APPROVALS}standing.py",
            f"{_GUARD}notifying.py",
            f"{_GATE}policy_voice.py",
        ),
        words=(
            "_RECORDED",
            "_SHOWN",
            "_RISK_BY_RULE",
            "_IN_DOUBT",
            "_OWN_WORDS",
            "_NOTICE",
            "_UNITS",
            "_WINDOWS",
            "_STANDING",
        ),
    ),
    "gate.starts": Module(GATE / "starts.py", (f"{_CONTRACTS}start_book.py", f"{_GUARD}parts.py")),
    "gate.guardrails": Module(GATE / "guardrails.py", (f"{_GATE}rules.py",)),
    "gate.json_values": Module(GATE / "json_values.py", (f"{_GATE}json_values.py", f"{_GATE}rules.py")),
    "gate.call_table": Module(GATE / "call_table.py", (*_RUN_GUARD, "tests/agents/test_runner.py")),
    "runs.ledger": Module(PACKAGE / "agents/runs/ledger.py", _RUN_GUARD),
    "policy.argument_names": Module(GATE / "policy/argument_names.py", (f"{_POLICY}argument_names.py",)),
    "policy.checking": Module(GATE / "policy/checking.py", (f"{_POLICY}checking.py",)),
    "policy.fitting": Module(GATE / "policy/fitting.py", (f"{_POLICY}fitting.py",)),
    "policy.profiles": Module(GATE / "policy/profiles.py", (f"{_GATE}policy_voice.py", "tests/agents/test_models.py")),
    "policy.rules": Module(GATE / "policy/rules.py", (f"{_POLICY}reading.py", f"{_GATE}policy_voice.py")),
    "policy.reading": Module(GATE / "policy/reading.py", (f"{_POLICY}reading.py",)),
    "gate.suggesting": Module(GATE / "suggesting.py", (f"{_GATE}suggesting.py",)),
    "policy.ruling": Module(GATE / "policy/ruling.py", (f"{_POLICY}ruling.py",)),
    "approvals.decisions": Module(GATE / "approvals/decisions.py", (f"{_APPROVALS}decisions.py",)),
    "approvals.models": Module(
        GATE / "approvals/models.py",
        (f"{_APPROVALS}controller.py", f"{_APPROVALS}standing.py", f"{_APPROVALS}decisions.py"),
    ),
    "approvals.standing": Module(
        GATE / "approvals/standing.py", (f"{_APPROVALS}standing.py", f"{_GUARD}call_keeper.py")
    ),
    "approvals.controller": Module(GATE / "approvals/controller.py", (f"{_APPROVALS}controller.py",)),
    "audit.archiving": Module(GATE / "audit/archiving.py", (f"{_AUDIT}archiving.py",)),
    "audit.records": Module(GATE / "audit/records.py", (f"{_AUDIT}heads.py", f"{_AUDIT}log.py")),
    "audit.log": Module(GATE / "audit/log.py", (f"{_AUDIT}log.py", "tests/agents/test_composition.py")),
    "audit.verifying": Module(GATE / "audit/verifying.py", (f"{_AUDIT}story.py",)),
    "guard.asking": Module(PACKAGE / "guard/asking.py", (f"{_GUARD}call_keeper.py", f"{_GUARD}who_answers.py")),
    "guard.definitions": Module(
        PACKAGE / "guard/definitions.py", (f"{_GUARD}swapped_definitions.py", f"{_GUARD}call_keeper.py")
    ),
    "guard.given_replies": Module(PACKAGE / "guard/given_replies.py", (f"{_GUARD}given_replies.py",)),
    "guard.peers": Module(
        PACKAGE / "guard/peers.py", (f"{_GUARD}parts.py", f"{_GUARD}relay.py", f"{_GUARD}swapped_definitions.py")
    ),
    "guard.relay": Module(PACKAGE / "guard/relay.py", (f"{_GUARD}relay.py", f"{_GUARD}call_keeper.py")),
    "guard.call_keeper": Module(PACKAGE / "guard/call_keeper.py", (f"{_GUARD}call_keeper.py",)),
    "guard.gatekeeping": Module(
        PACKAGE / "guard/gatekeeping.py",
        (f"{_GUARD}gatekeeping.py", f"{_GUARD}call_keeper.py", f"{_GUARD}parts.py"),
    ),
    "guard.messages": Module(
        PACKAGE / "guard/messages.py", (f"{_GUARD}messages.py", f"{_GUARD}relay.py", f"{_GUARD}call_keeper.py")
    ),
    "guard.questions": Module(PACKAGE / "guard/questions.py", (f"{_GUARD}call_keeper.py", f"{_GUARD}parts.py")),
    "secrets.masking": Module(GATE / "secrets/masking.py", (f"{_SECRETS}masking.py",)),
    "secrets.withholding": Module(GATE / "secrets/withholding.py", (f"{_SECRETS}withholding.py",)),
}

# Modules of the rooms of which everything is changed, and why these are not.
UNCHANGED = {
    GATE / "stores.py": "promises alone",
    **{
        PACKAGE / f"guard/{name}.py": "starts, wires or sets up the guard; no call passes through it"
        for name in (
            *("client_files", "client_ways", "command_line", "composition", "doctor", "lifetime", "login"),
            *("many_clients", "notifying", "opened_gate", "over_http", "remote", "servers", "setup", "stderr_lines"),
        )
    },
}

# By module, line of code as it stands, and change: why no test can or need tell the difference.
KNOWN_SURVIVORS: dict[tuple[str, str, str], str] = {
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
    (
        "dispatcher",
        '"Answers questions with sources, searching the web when needed. Use answer for most questions, answer_detailed for"',
        "another text",
    ): "the wording of the instructions",
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
        "user = _token_at(text, start, at if colon < 0 else colon)",
        "0 to 1",
    ): "a scheme stands before every colon that is looked for",
    (
        "masking",
        'return _Look(tuple(longest_first), re.compile("|".join(map(re.escape, longest_first))), "")',
        "another text",
    ): "a name that nobody asks for",
    ("masking", "for shift in range(3):", "3 to 4"): "four letters hold three bytes, so a shift by three is none",
    ("masking", "first = -(-shift * 8 // 6)", "8 to 9"): "the same for the shifts there are, 0 to 2",
    ("masking", "first = -(-shift * 8 // 6)", "6 to 7"): "the same for the shifts there are, 0 to 2",
    ("framer", "return _Step.NEED_MORE", "returns None"): "None means the same to the caller",
    ("framer", "NEED_MORE = 2", "2 to 3"): "a name with another number behind it",
    ("framer", "UNDECIDED = 4", "4 to 5"): "a name with another number behind it",
    ("framer", "self._searched = 0", "0 to 1"): "no line that is searched begins with its end",
    ("framer", "self._header_lines = 0", "0 to 1"): "set anew with every header block",
    ("framer", "self._header_bytes = 0", "0 to 1"): "set anew with every header block",
    ("framer", "self._body_bytes = 0", "0 to 1"): "set anew with every body",
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
        "gate.deciding",
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
        "approvals.controller",
        "token_hash=token_hash(secrets.token_urlsafe(32)),",
        "32 to 33",
    ): "longer is as good, and nobody gets it",
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
            ("self._count(1)", "1 to 2"),
        )
    },
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
        ("runs.ledger", line, "True to False"): "there are always as many of one as of the other"
        for line in (
            "for (turn, _), request, asked in zip(planned, requests, questions, strict=True)",
            "[(request, decision) for request, (decision, _) in zip(requests, verdicts, strict=True)]",
            "asks = [self._asks(call, decision) for call, decision in zip(calls, decisions, strict=True)]",
            "for call, decision, is_asked, about_budgets in zip(calls, decisions, asks, questions, strict=True):",
        )
    },
}

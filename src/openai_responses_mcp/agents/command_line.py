"""`openai-responses-mcp agents doctor`: one line per check on stdout; exit code 1 if a check fails.

agents doctor [--provider NAME] [--store URL] [--audit-head FILE] [--mcp COMMAND|URL]... [--skills FOLDER]... [--json]
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from openai_responses_mcp.agents.composition import open_diagnosis
from openai_responses_mcp.agents.doctor import DoctorReport
from openai_responses_mcp.desk.terminal.console import json_of, writable
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import visible
from openai_responses_mcp.gate.errors import AgentsError


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        report = asyncio.run(_report(arguments))
    except AgentsError as exc:
        sys.stderr.write(f"openai-responses-mcp agents: {visible(str(exc))}\n")
        return 2
    except ModuleNotFoundError as exc:
        sys.stderr.write(f"openai-responses-mcp agents: {needs_extra('agents', exc.name)}\n")
        return 2
    encoding = sys.stdout.encoding or "utf-8"
    findings = [asdict(one) for one in report.findings]
    text = json_of(findings, encoding) if arguments.json else writable(visible(str(report)), encoding)
    sys.stdout.write(f"{text}\n")
    return 0 if report.is_healthy else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("openai-responses-mcp agents doctor", description="Check what agents need.")
    parser.add_argument("--provider", metavar="NAME", help="instead of the one in AGENTS_MODEL_PROVIDER")
    parser.add_argument("--store", metavar="URL", help="the store of the runs (else AGENTS_STORE)")
    parser.add_argument("--audit-head", metavar="FILE", help="where the head of the log is kept")
    parser.add_argument("--mcp", metavar="SERVER", action="append", default=[], help="a command or a URL; repeatable")
    parser.add_argument("--skills", metavar="FOLDER", action="append", default=[], help="repeatable")
    parser.add_argument("--json", action="store_true", help="JSON instead of lines")
    return parser


async def _report(arguments: argparse.Namespace) -> DoctorReport:
    servers = []
    if arguments.mcp:
        from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool

        servers = [hosted_mcp_tool(server) for server in arguments.mcp]
    diagnosis = open_diagnosis(arguments.store or os.environ.get("AGENTS_STORE"), arguments.audit_head)
    try:
        listings = [(server.name, server.list_tools) for server in servers]
        return await diagnosis.doctor(servers=listings, skills=arguments.skills, provider=arguments.provider)
    finally:
        for server in servers:
            await server.close()

"""Kill processes at random moments of their writes, and see after each that nothing is lost, doubled or locked.

    python -m tests.tools.kills [--kills 500] [--on disk|full-disk|postgres]

Victims are by turns an agent that runs, pauses, approves and resumes, and a guard with calls in flight. On a full disk
they are agents whose files may grow only a little more. After each kill come a new guard, every command and a new run, in
changing order, and then: all that was acknowledged is there, no tool has run twice, and the log is intact. Agents are
forked from a process that has imported everything. The files are on a disk, where a write takes time: in memory hardly
any kill hits one. A new store is made every few kills, so that some victims die while they make it.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner, tool
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import RunOptions
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.cli import main as command
from openai_responses_mcp.gate.errors import AgentsError
from tests.conftest import served_postgres
from tests.gate.sql.interrupted_writes import has_hot_journal
from tests.guard.conftest import ALLOW_ALL, Guard, policy_file
from tests.tools.talking import say

KILLS_PER_STORE = 25
SEED = 20261118
SHORTEST_LIMIT_SECONDS = 0.3
GUARDED_CALLS = 20
FULL_AFTER_BYTES = 60_000
COMMANDS = (
    ("log",),
    ("log", "--verify"),
    ("log", "verify"),
    ("status",),
    ("approvals", "list"),
    ("approvals", "standing"),
    ("policy", "test", "policy.yaml"),
    ("policy", "check", "policy.yaml"),
    ("doctor",),
)
MEMORY = ("tmpfs", "ramfs")


class Scene:
    """The files of one store: what the tools did, and what the victims were told is done."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder = folder
        self.database = folder / "agents.db"
        self.store = store or f"sqlite:///{self.database}"
        self.did, self.acknowledged, self.failed = (
            folder / f"{name}.txt" for name in ("did", "acknowledged", "failed")
        )
        for file in (self.did, self.acknowledged, self.failed):
            file.touch()
        policy_file(folder, ALLOW_ALL)

    def runner(self) -> AgentRunner:
        return create_runner(safety_agent=SafetyAgent.allow_all(), store=self.store, audit="required")

    def agent(self, *turns: Any) -> Any:
        @tool(risk_level=3)
        def act(mark: str) -> str:
            """Do something that must not be done twice."""
            note(self.did, mark)
            return f"did {mark}"

        return Agent(name="Victim", model=ScriptedModel(*turns), tools=[act])

    def guard(self) -> Guard:
        return Guard(self.folder, "--store", self.store, "--policy", str(self.folder / "policy.yaml"))

    @property
    def is_interrupted(self) -> bool:
        return self.database.exists() and has_hot_journal(self.database)


def note(file: Path, line: str) -> None:
    """One write, so that a kill leaves the whole line or nothing."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines()


# ---------------------------------------------------------------------------------------------------------------------
# Victims


async def live(scene: Scene, number: int) -> None:
    """Take up what predecessors left waiting, and go on with work of its own."""
    runner = scene.runner()
    for request in await runner.get_pending_approvals():
        await finish(scene, runner, request.run_id, request.approval_id)
    for place in range(1000):
        await run_once(scene, runner, f"{number}-{place}")


async def run_once(scene: Scene, runner: AgentRunner, mark: str) -> None:
    agent = scene.agent(ScriptedCall("act", {"mark": mark}, f"call-{mark}"))
    paused = await runner.run(agent, mark, RunOptions())
    note(scene.acknowledged, f"approval_requested {paused.run_id}")
    await finish(scene, runner, paused.run_id, paused.interruptions[0].approval_id)


async def finish(scene: Scene, runner: AgentRunner, run_id: str, approval_id: str) -> None:
    try:
        await runner.approve_and_resume(run_id, approval_id, agent=scene.agent("done"))
    except AgentsError as exc:
        # A predecessor died after saving the run and before the rest; what it left cannot be taken up, and is not.
        if exc.code not in ("AGENTS-E-RESUME-TOKEN", "AGENTS-E-APPROVAL-INVALID"):
            raise
        return
    note(scene.acknowledged, f"outcome {run_id}")


def forked(work: Callable[[], object]) -> int:
    """The process that does it; it exits with 9 when it fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(9)
        os._exit(0)
    return child


def kill_agent(scene: Scene, number: int, seconds: float) -> None:
    victim = forked(lambda: asyncio.run(live(scene, number)))
    time.sleep(seconds)
    os.kill(victim, signal.SIGKILL)
    if not os.WIFSIGNALED(os.waitpid(victim, 0)[1]):
        note(scene.failed, f"victim {number} died by itself")


def kill_guard(scene: Scene, number: int, seconds: float) -> None:
    with closing(scene.guard()) as victim:
        victim.initialize()
        for place in range(GUARDED_CALLS):
            victim.start_call("echo", place, text=f"{number}-{place}")
        time.sleep(seconds)
        victim.process.kill()
        victim.process.wait()
        with contextlib.suppress(AssertionError):  # there is no more
            while True:
                note(scene.acknowledged, f"guarded {number}-{victim.reply_to_any()['id']}")


def fill_disk(scene: Scene, number: int, seconds: float) -> None:
    """An agent whose files reach a limit, and that gives up then."""

    def work() -> None:
        size = scene.database.stat().st_size if scene.database.exists() else 0
        limit = size + random.Random(number).randrange(-4096, FULL_AFTER_BYTES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(limit, 0), resource.RLIM_INFINITY))
        try:
            asyncio.run(live(scene, number))
        except AgentsError as exc:
            if exc.code != "AGENTS-E-LOG-STORE":
                raise

    victim = forked(work)
    deadline = time.monotonic() + 10 * seconds
    while (ended := os.waitpid(victim, os.WNOHANG)) == (0, 0):
        time.sleep(0.01)
        if time.monotonic() > deadline:
            os.kill(victim, signal.SIGKILL)
    if not os.WIFSIGNALED(ended[1]) and ended[1] != 0:
        note(scene.failed, f"victim {number} did not stop at a full disk")


# ---------------------------------------------------------------------------------------------------------------------
# What must work after each


def checks(scene: Scene, number: int) -> list[Callable[[], object]]:
    """In an order of their own each time, since the first of them is the one that finds an unfinished write."""
    found: list[Callable[[], object]] = [lambda words=words: check_command(scene, words) for words in COMMANDS]  # type: ignore[misc]
    found += [lambda: check_run(scene, number), lambda: check_guard(scene, number)]
    random.Random(number).shuffle(found)
    return found


def check_command(scene: Scene, words: tuple[str, ...]) -> None:
    def work() -> None:
        os.chdir(scene.folder)
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
            code = command(["agents", *words, "--store", scene.store])
        text = said.getvalue()
        # There may be no store yet; the doctor misses a provider; a replay may find calls that were decided otherwise.
        is_well = code == 0 or "There is no store" in text or "store: the log of" in text
        if not is_well and (words[0], code) != ("policy", 1):
            note(scene.failed, f"{' '.join(words)} gave {code}: {' '.join(text.split())[-200:]}")

    expect_success(scene, " ".join(words), forked(work))


def check_run(scene: Scene, number: int) -> None:
    expect_success(scene, "a run", forked(lambda: asyncio.run(run_once(scene, scene.runner(), f"after-{number}"))))


def expect_success(scene: Scene, what: str, child: int) -> None:
    if os.waitpid(child, 0)[1] != 0:
        note(scene.failed, f"{what} failed")


def check_guard(scene: Scene, number: int) -> None:
    with closing(scene.guard()) as guard:
        guard.initialize()
        reply = guard.called("echo", text=f"after-{number}")
        if "got" not in json.dumps(reply) or guard.finish() != 0:
            note(scene.failed, f"the guard answered {reply}")
        note(scene.acknowledged, f"guarded after-{number}")


async def problems(scene: Scene) -> list[str]:
    runner = scene.runner()
    logs = await runner.get_execution_logs()
    recorded = {(log.event, log.run_id) for log in logs}
    recorded |= {("guarded", str(log.arguments.get("text"))) for log in logs if log.event in ("decision", "started")}
    acknowledged = [tuple(line.split()) for line in lines_of(scene.acknowledged)]
    found = [f"lost: {event} of {which}" for event, which in acknowledged if (event, which) not in recorded]
    found += [f"{mark} was done {times} times" for mark, times in done_in(scene).items() if times > 1]
    verification = await runner.verify_execution_logs()
    if not verification.is_intact:
        found.append(f"the log is broken: {verification.problem}")
    return found + lines_of(scene.failed)


def done_in(scene: Scene) -> Counter[str]:
    seen_file = scene.folder / "seen.jsonl"
    seen = map(json.loads, lines_of(seen_file)) if seen_file.exists() else ()
    calls = (message["params"]["arguments"]["text"] for message in seen if message.get("method") == "tools/call")
    return Counter([*lines_of(scene.did), *(f"guarded {text}" for text in calls)])


# ---------------------------------------------------------------------------------------------------------------------
# All of it


def disk_folder() -> str:
    """A folder for passing files that is not in memory."""
    return next(folder for folder in (tempfile.gettempdir(), "/var/tmp", ".") if filesystem_of(folder) not in MEMORY)


def filesystem_of(folder: str) -> str:
    return subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()


@contextmanager
def stores(on: str) -> Iterator[Callable[[], str | None]]:
    """Gives the address of a new store; None for a file in the scene's folder."""
    if on != "postgres":
        yield lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="kills-postgres-", ignore_cleanup_errors=True) as folder:
        yield from served_postgres(Path(folder))


def warm_up(folder: Path) -> float:
    """Import everything before the first fork, so that victims are quick to get going. Gives the time of one run."""
    folder.mkdir()
    in_memory = Scene(folder, "sqlite://")
    asyncio.run(run_once(in_memory, in_memory.runner(), "warm"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        command(["agents", "--help"])
    began = time.monotonic()
    check_run(Scene(folder), 0)
    return time.monotonic() - began


def kill_all(kills: int, on: str, folder: Path) -> bool:
    # On a busy machine victims live longer, so that they get as far.
    longest = max(SHORTEST_LIMIT_SECONDS, 2 * warm_up(folder / "warm"))
    victims = [fill_disk] if on == "full-disk" else [kill_agent, kill_guard]
    chance, counts, found = random.Random(SEED), Counter[str](), list[str]()
    began = time.monotonic()
    with stores(on) as new_store:
        scene = None
        for number in range(kills):
            if number % KILLS_PER_STORE == 0 or scene is None:
                (folder / str(number)).mkdir()
                scene = Scene(folder / str(number), new_store())
            victims[number % len(victims)](scene, number, chance.uniform(0.005, longest))
            counts["unfinished writes"] += scene.is_interrupted
            for check in checks(scene, number):
                check()
            try:
                found = asyncio.run(problems(scene))
            except AgentsError as exc:
                found = [*lines_of(scene.failed), f"the log cannot be read: {exc}"]
            if found:
                break
            if number % KILLS_PER_STORE == KILLS_PER_STORE - 1 or number == kills - 1:
                counts["acknowledgements"] += len(lines_of(scene.acknowledged))
                counts["calls run"] += done_in(scene).total()
                say(f"  {number + 1} kills so far, {time.monotonic() - began:.0f} s")
    facts = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    where = "PostgreSQL" if on == "postgres" else f"{on} ({filesystem_of(str(folder))})"
    say(f"{number + 1} kills on {where} in {time.monotonic() - began:.0f} s: {facts}, {len(found)} problems")
    for problem in found:
        say(f"  FAILED: {problem}")
    say("0 passed, 1 failed" if found else "1 passed, 0 failed")
    return not found and counts["calls run"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--on", choices=("disk", "full-disk", "postgres"), default="disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-", dir=disk_folder(), ignore_cleanup_errors=True) as folder:
        return 0 if kill_all(options.kills, options.on, Path(folder)) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Kill a process that runs, pauses, approves and resumes, at any point, again and again; then look what is left.

    python soak_kill.py [COUNT] [STORE]

Nothing that was acknowledged may be missing, no tool may have run twice, the log must be intact. Each victim is forked
from a process that has imported everything, picks up what its predecessors left waiting, and goes on until it is
killed. COUNT is 500 unless given; without a STORE a SQLite file is used.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner, tool
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import RunOptions
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel

SHORTEST_LIMIT_SECONDS = 0.6
# A killed process leaves what it wrote to the system, so that the disk need not be waited for.
MEMORY = Path("/dev/shm")


class Scene:
    """The files of one soak: what the tool did, and what the victims were told is done."""

    def __init__(self, folder: Path, store: str) -> None:
        self.store = store
        self.did = folder / "did.txt"
        self.acknowledged = folder / "acknowledged.txt"
        for file in (self.did, self.acknowledged):
            file.touch()

    def runner(self) -> AgentRunner:
        return create_runner(safety_agent=SafetyAgent.allow_all(), store=self.store, audit="required")

    def agent(self, *turns: Any) -> Any:
        @tool(risk_level=3)
        def act(mark: str) -> str:
            """Do something that must not be done twice."""
            note(self.did, mark)
            return f"did {mark}"

        return Agent(name="Victim", model=ScriptedModel(*turns), tools=[act])


def note(file: Path, line: str) -> None:
    """One write, so that a kill leaves the whole line or nothing."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def live(scene: Scene, number: int) -> None:
    runner = scene.runner()
    for request in await runner.get_pending_approvals():
        await finish(scene, runner, request.run_id, request.approval_id)
    for place in range(1000):
        mark = f"{number}-{place}"
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


async def warm_up(folder: str) -> None:
    """Everything is imported and used once before the first fork, so that victims are quick to get going."""
    aside = Path(folder) / "aside"
    aside.mkdir()
    scene = Scene(aside, "sqlite://")
    runner = scene.runner()
    agent = scene.agent(ScriptedCall("act", {"mark": "warm"}), "done")
    paused = await runner.run(agent, "warm up")
    await runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id)


def kill_one(scene: Scene, number: int, longest_life_seconds: float, chance: random.Random) -> None:
    victim = os.fork()
    if victim == 0:
        try:
            asyncio.run(live(scene, number))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(9)
        os._exit(0)
    time.sleep(chance.uniform(0.01, longest_life_seconds))
    os.kill(victim, signal.SIGKILL)
    status = os.waitpid(victim, 0)[1]
    if not os.WIFSIGNALED(status):
        raise SystemExit("a victim died by itself")


async def problems(scene: Scene) -> list[str]:
    runner = scene.runner()
    logs = await runner.get_execution_logs()
    recorded = {(log.event, log.run_id) for log in logs}
    acknowledged = [tuple(line.split()) for line in scene.acknowledged.read_text().splitlines()]
    found = [f"lost: {event} of {run_id}" for event, run_id in acknowledged if (event, run_id) not in recorded]
    done = Counter(scene.did.read_text().splitlines())
    found += [f"{mark} was done {times} times" for mark, times in done.items() if times > 1]
    verification = await runner.verify_execution_logs()
    if not verification.is_intact:
        found.append(f"the log is broken: {verification.problem}")
    return found


def main(count: int = 500, store: str | None = None, seed: int = 20261116) -> int:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        scene = Scene(Path(folder), store or f"sqlite:///{folder}/agents.db")
        began = time.monotonic()
        asyncio.run(warm_up(folder))
        # On a busy machine victims live longer, so that they get as far.
        longest = max(SHORTEST_LIMIT_SECONDS, 3 * (time.monotonic() - began))
        chance = random.Random(seed)
        for number in range(count):
            kill_one(scene, number, longest, chance)
        found = asyncio.run(problems(scene))
        done = len(scene.did.read_text().splitlines())
        acknowledged = len(scene.acknowledged.read_text().splitlines())
    report = f"{count} kills, {done} tools run, {acknowledged} acknowledgements, {len(found)} problems"
    sys.stdout.write("\n".join([report, *found]) + "\n")
    return 1 if found or not done else 0


if __name__ == "__main__":
    raise SystemExit(main(*(int(word) if word.isdigit() else word for word in sys.argv[1:])))  # type: ignore[arg-type]

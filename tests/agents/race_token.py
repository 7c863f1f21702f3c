"""Many processes with one token: each tries to use it up, and the exit code of each says whether it was the one.

    python race_token.py STORE RUN TOKEN PROCESSES

Prints how many succeeded. The processes are forked from one that has imported everything, so that they really race.
"""

import asyncio
import os
import sys

from openai_responses_mcp.desk.opening import open_desk_parts
from openai_responses_mcp.gate.errors import AgentsError


def use_up(store: str, run_id: str, token: str) -> bool:
    approvals = open_desk_parts(store).approvals

    async def attempt() -> bool:
        try:
            record = await approvals.check_token(token, run_id)
            await approvals.consume(token, record)
        except AgentsError as exc:
            if exc.code != "AGENTS-E-RESUME-TOKEN":
                raise
            return False
        return True

    return asyncio.run(attempt())


def main(store: str, run_id: str, token: str, processes: int) -> int:
    open_desk_parts(store)  # imports the driver, connects to nothing
    children = []
    waiting, go = os.pipe()
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(waiting, 1)  # returns when the parent closes its end
            try:
                os._exit(7 if use_up(store, run_id, token) else 0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(9)
        children.append(child)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if set(codes) - {0, 7}:
        raise SystemExit(f"a process failed: {codes}")
    sys.stdout.write(f"{codes.count(7)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))

"""`make bench`: every server in turn, in random order, round after round; then the growth, the framer, a guarded call,
the report.

Progress goes to stderr, the tables to stdout, everything measured to `.bench/results.json`, and the report to `docs`.
A server that fails ends its turn, and the table says so; the run goes on.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.tools.bench import measures, report
from tests.tools.bench.servers import (
    HERE,
    OURS,
    ROOT,
    SERVERS,
    NotInstalled,
    Server,
    compile_packages,
    environment,
)
from tests.tools.talking import Broken, stand_in

# A slow machine makes fewer rounds, so that the whole stays within ten minutes.
ROUNDS_END_AFTER_SECONDS = 420.0
STAND_IN = "tests.tools.bench.stand_in"
GROWTH_ROUNDS, GROWTH_ENDS_AFTER_SECONDS = 3, 540.0


class Progress:
    """One line per step on stderr, with the time that has gone."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.stage = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def say(self, step: str) -> None:
        minutes, seconds = divmod(int(self.seconds), 60)
        start, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
        sys.stderr.write(f"{start}{minutes}:{seconds:02} {self.stage}: {step}{end}")
        sys.stderr.flush()


class Run:
    """The servers that are there, and what has been measured of them so far."""

    def __init__(self, names: Sequence[str]) -> None:
        self.progress = Progress()
        self.servers: list[Server] = []
        self.names = names
        self.problems: dict[str, str] = {}
        self.sizes: dict[str, float] = {}
        self.rounds: list[dict[str, measures.Samples]] = []
        self.growth: dict[str, list[measures.Points]] = {}
        self.one_by_one: set[str] = set()

    def install(self) -> None:
        HERE.mkdir(exist_ok=True)
        (HERE / ".gitignore").write_text("*\n")
        self.progress.stage = "installing"
        for server in SERVERS:
            if server.name not in self.names:
                continue
            self.progress.say(server.name)
            try:
                server.install(server)
            except NotInstalled as exc:
                self.problems[server.name] = f"did not install: {exc}"
                continue
            compile_packages(server)
            self.sizes[server.name] = server.installed_bytes() / 1e6
            self.servers.append(server)

    def try_out(self, environ: dict[str, str]) -> None:
        """Nothing is measured of the first start: it may still write caches, and shows who starts at all."""
        self.progress.stage = "trying out"
        for server in [*self.servers]:
            self.progress.say(server.name)
            try:
                measures.start_up(server, environ)
            except (Broken, OSError) as exc:
                self.problems[server.name] = f"did not start: {exc}"
                self.servers.remove(server)

    def measure(self, count: int, environ: dict[str, str], base_url: str) -> None:
        for number in self._rounds(count if self.servers else 0, ROUNDS_END_AFTER_SECONDS):
            self.progress.stage = f"round {number} of {count}"
            samples: dict[str, measures.Samples] = {}
            beside: list[dict[str, measures.Samples]] = []
            for server in random.sample(self.servers, len(self.servers)):
                beside.append(measures.floors(our_python(), environ, base_url))
                samples[server.name] = self._turn(server, environ)
            samples |= {name: measures.medians([floors[name] for floors in beside]) for name in beside[0]}
            self.rounds.append(samples)

    def _rounds(self, count: int, end_after_seconds: float) -> Iterator[int]:
        """From 1 on; stops early when one more round as long as the longest would end too late."""
        longest = 0.0
        for number in range(1, count + 1):
            began = self.progress.seconds
            if number > 1 and began + longest > end_after_seconds:
                return
            yield number
            longest = max(longest, self.progress.seconds - began)

    def _turn(self, server: Server, environ: dict[str, str]) -> measures.Samples:
        def say(step: str) -> None:
            self.progress.say(f"{server.name}, {step}")

        is_known = server.name in self.one_by_one
        try:
            samples = measures.take_turn(server, environ, say, skip_bursts=is_known)
        except (Broken, OSError) as exc:
            self.problems[server.name] = str(exc)
            return {}
        if measures.is_one_by_one(samples):
            self.one_by_one.add(server.name)
        return samples

    def measure_growth(self, count: int, environ: dict[str, str]) -> None:
        for number in self._rounds(count, GROWTH_ENDS_AFTER_SECONDS):
            self.progress.stage = f"growth, round {number} of {count}"
            for server in random.sample(self.servers, len(self.servers)):
                self.progress.say(server.name)
                try:
                    points = measures.take_growth_turn(server, environ)
                except (Broken, OSError) as exc:
                    self.problems[server.name] = str(exc)
                    continue
                self.growth.setdefault(server.name, []).append(points)

    def results(self, framer: Any) -> dict[str, Any]:
        return {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": machine(),
            "servers": [server.name for server in self.servers],
            "problems": self.problems,
            "installed_mb": self.sizes,
            "rounds": self.rounds,
            "growth": self.growth,
            "framer": framer,
            "seconds": round(self.progress.seconds),
        }


def machine() -> dict[str, Any]:
    node = subprocess.run(["node", "--version"], capture_output=True, text=True)
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "node": node.stdout.strip().removeprefix("v"),
        "load": round(os.getloadavg()[1], 1),  # of five minutes, which is less than the measuring took
    }


def our_python() -> Path:
    """Of the environment that this project is installed in for the measuring; ours where it is not."""
    python = next(server.folder for server in SERVERS if server.name == OURS) / "bin" / "python"
    return python if python.exists() else Path(sys.executable)


def measure_framer(progress: Progress) -> Any:
    progress.stage = "framer"
    progress.say("bodies and messages")
    script = Path(__file__).parent / "framer.py"
    done = subprocess.run([our_python(), script], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def measured_alone(progress: Progress, name: str, *options: str) -> Any:
    """By a module of its own, in a process that has nothing else to do."""
    progress.stage = name
    progress.say("beside each other")
    command = [sys.executable, "-m", f"tests.tools.bench.{name}", "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(done.stdout)


def arguments() -> argparse.Namespace:
    names = [server.name for server in SERVERS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.bench.run", description="Measure this server and its peers."
    )
    parser.add_argument("--rounds", type=int, default=10, help="turns of every server")
    parser.add_argument("--only", action="append", choices=names, help="measure this server only; may be given again")
    parser.add_argument("--no-docs", action="store_true", help="leave docs as it is; so does --only")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    run = Run(options.only or [server.name for server in SERVERS])
    run.install()
    with tempfile.TemporaryDirectory() as home, stand_in(STAND_IN) as base_url:
        environ = environment(home, base_url)
        run.try_out(environ)
        run.measure(options.rounds, environ, base_url)
        run.measure_growth(min(GROWTH_ROUNDS, options.rounds), environ)
    results = run.results(measure_framer(run.progress))
    if not options.only:
        results["guarded"] = measured_alone(run.progress, "guarded")
        results["guard"] = measured_alone(run.progress, "guard")
        results["http"] = measured_alone(run.progress, "over_http", "--rounds", str(options.rounds))
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    run.progress.say("done\n" if sys.stderr.isatty() else "done")
    report.write(HERE / "results.json", ROOT / "docs", updates_docs=not (options.only or options.no_docs))


if __name__ == "__main__":
    main()

"""How the cost grows: the time and the memory of 1 to 1,000 calls in flight, and of answers of 1 to 512 KB."""

from collections.abc import Mapping
from statistics import median

from tests.tools.bench.conversation import Conversation
from tests.tools.bench.measures import BURST_DELAY_SECONDS, burst_ms, call_ms, forget_peak, resident_mib, warmed_up
from tests.tools.bench.servers import Server

IN_FLIGHT = (1, 3, 10, 30, 100, 300, 1000)
SIZES_KB = (1, 4, 16, 64, 256, 512)
_CALLS_PER_SIZE = 5

Points = dict[str, dict[int, float]]


def take_growth_turn(server: Server, environ: Mapping[str, str]) -> Points:
    """By curve, then by how many or how large; a curve ends where a server no longer answers in time."""
    points: Points = {"flight_ms": {}, "flight_mib": {}, "size_ms": {}, "size_mib": {}}
    with warmed_up(server, environ) as talk:
        for size_kb in SIZES_KB:
            points["size_ms"][size_kb], points["size_mib"][size_kb] = _one_size(server, talk, size_kb)
    with warmed_up(server, environ) as talk:
        for count in IN_FLIGHT:
            forget_peak(talk.pid)
            milliseconds, lost = burst_ms(server, talk, count)
            if lost:
                break
            points["flight_ms"][count] = milliseconds - BURST_DELAY_SECONDS * 1000
            points["flight_mib"][count] = resident_mib(talk.pid, "VmHWM")
    return points


def _one_size(server: Server, talk: Conversation, size_kb: int) -> tuple[float, float]:
    forget_peak(talk.pid)
    milliseconds = median(call_ms(server, talk, size_kb * 1000) for _ in range(_CALLS_PER_SIZE))
    return milliseconds, resident_mib(talk.pid, "VmHWM")

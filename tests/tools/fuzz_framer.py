"""Coverage-guided fuzzing of the framer: any bytes in any chunking give the same outcomes, and memory stays bounded.

The first bytes of each input say where to cut the rest. Run by `fuzz.py`; `-runs` and `-max_total_time` are libFuzzer's.
"""

import itertools
import sys

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["openai_responses_mcp.adapters.stdio.framing"]):
    from openai_responses_mcp.adapters.stdio import framing
    from openai_responses_mcp.adapters.stdio.framing import StdioFramer

from openai_responses_mcp.domain.ports import FramingFault

# All limits are small, so that short inputs, which are quick to try, reach every state.
LIMIT = 32
framing.LONGEST_HEADER_BYTES = 48
framing.MOST_HEADER_LINES = 4
MOST_CUTS = 4
# The longest line that may wait for its end, with what can still turn out to belong to it.
MOST_BUFFERED = max(LIMIT + len(b"\r"), framing.LONGEST_HEADER_BYTES)

PING = b'{"id":1}'
GOOD = b"Content-Length: 8\r\n\r\n" + PING

_WIRES = (
    PING + b"\n",
    GOOD + GOOD,
    b"\xef\xbb\xbf" + PING + b"\r\n\n \t" + GOOD,
    b"Content-Length: x\r\n\r\n" + PING + GOOD + PING + b"\n",
    b"A: 1\n" * 5 + b"\n" + GOOD,
    b"Content-Length: 999\r\n\r\n" + b"x" * 40,
    b"x" * 40 + b"\n" + PING,
    b"Content-Length: 8\nContent-Length: 8\n\n" + PING + b"content-length :8\n\n" + PING,
    b"A: " + b"x" * 60 + b"\n\n" + GOOD,
    b"A: 1\n folded\n\n" + GOOD,
)
SEEDS = tuple(bytes(MOST_CUTS) + wire for wire in _WIRES)
WORDS = (b"Content-Length: 8\r\n\r\n", b"content-length:", b"\r\n\r\n", b"\n\n", b": ", b"{}", b"[]", b"\xef\xbb\xbf")
LONGEST_INPUT = 160


def outcomes(chunks: list[bytes]) -> tuple[list[bytes | str], bool]:
    framer = StdioFramer(LIMIT)
    found: list[bytes | str] = []
    for chunk in chunks:
        framer.receive(chunk)
        take(framer, found)
        if len(framer._buffer) > MOST_BUFFERED + len(chunk):
            raise AssertionError(f"{len(framer._buffer)} bytes are kept")
    framer.receive_end()
    take(framer, found)
    return found, framer.is_line_mode


def take(framer: StdioFramer, found: list[bytes | str]) -> None:
    while (outcome := framer.next_message()) is not None:
        if isinstance(outcome, bytes) and len(outcome) > LIMIT:
            raise AssertionError("a message is longer than the limit")
        found.append(outcome.reason if isinstance(outcome, FramingFault) else outcome)


def test_one(data: bytes) -> None:
    cuts, wire = data[:MOST_CUTS], data[MOST_CUTS:]
    marks = [0, *sorted(cut * (len(wire) + 1) // 256 for cut in cuts), len(wire)]
    chunks = [wire[start:end] for start, end in itertools.pairwise(marks)]
    if outcomes([wire]) != outcomes(chunks):
        raise AssertionError("the chunking changes the outcome")


def main() -> None:
    atheris.Setup(sys.argv, test_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

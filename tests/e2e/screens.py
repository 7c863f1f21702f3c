"""A screen as a terminal would show it: as much of a terminal as our own output needs, and an error for all else."""

import re
import unicodedata

_PIECE = re.compile(
    r"(?P<steer>\x1b\[(?P<number>\d*)(?P<verb>[AKJ]))|(?P<style>\x1b\[[\d;]*m)"
    r"|(?P<link>\x1b\]8;[^\x1b]*\x1b\\)|(?P<letter>[^\x1b])",
    re.DOTALL,
)


class Screen:
    """`lines` is what can be seen, and what has scrolled off; `links` are the addresses that can be clicked."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._columns = columns
        self._rows = rows
        self._cells: list[list[str]] = [[]]
        self._row = self._column = 0
        self.links: list[str] = []
        self.widest = 0

    def feed(self, text: str) -> None:
        place = 0
        while place < len(text):
            piece = _PIECE.match(text, place)
            assert piece is not None, f"what shall a terminal do with {text[place : place + 20]!r}?"
            place = piece.end()
            if piece["steer"]:
                self._steer(piece["verb"], int(piece["number"] or 0))
            elif piece["link"]:
                self.links += [piece["link"].split(";", 2)[2].removesuffix("\x1b\\")]
            elif piece["letter"]:
                self._show(piece["letter"])

    @property
    def lines(self) -> list[str]:
        return ["".join(cells).rstrip(" ") for cells in self._cells]

    def _show(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._row += 1
            if self._row == len(self._cells):
                self._cells.append([])
        else:
            self._put(letter)

    def _put(self, letter: str) -> None:
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self._column + width > self._columns:
            self._show("\n")
            self._column = 0
        cells = self._cells[self._row]
        cells += [" "] * (self._column - len(cells))
        cells[self._column : self._column + width] = [letter, *[""] * (width - 1)]
        self._column += width
        self.widest = max(self.widest, self._column)

    def _steer(self, verb: str, number: int) -> None:
        if verb == "A":
            # Further up than the screen is high, a terminal stops at its first line.
            self._row = max(self._row - number, len(self._cells) - self._rows, 0)
            return
        del self._cells[self._row][self._column :]
        if verb == "J":
            del self._cells[self._row + 1 :]

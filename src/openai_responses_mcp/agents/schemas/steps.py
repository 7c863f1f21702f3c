"""How much work checking a value may cost. Schemas and values come from outside, and a small one can be made to take for ever."""

# Less than a second of work; a list of ten thousand ordinary objects takes a third of it.
MOST_STEPS = 500_000
# Few enough to be taken on the event loop without anybody noticing.
FEW_STEPS = 2_000
DEEPEST = 100


class OutOfSteps(Exception):
    """The budget is used up."""


class TooDeep(Exception):
    """The value or the schema is nested deeper than anybody writes."""


class Steps:
    """A budget. A step is a small, bounded piece of work: looking at one value, one keyword, one name of a list."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = most

    def spend(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise OutOfSteps

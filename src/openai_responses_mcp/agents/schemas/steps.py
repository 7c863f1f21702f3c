"""How much work checking a value may cost. Values and schemas come from outside, and a small one can take for ever."""

# Less than a second of work, and enough for a list of many thousand ordinary objects.
MOST_STEPS = 500_000
# Few enough not to hold up the event loop.
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

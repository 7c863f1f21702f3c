"""The checker of arguments held against the JSON Schema Test Suite, drafts 7, 2019-09 and 2020-12.

    python -m tests.tools.schema_tests <folder of the suite>

The suite says of each value whether it fits. "Cannot say" is never wrong, but at least 85 % of the answers have to be
definite. Optional tests count too, except those that want `format` and `content…` to be checked.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.schema.checking import SchemaChecker

DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
LEFT_OUT = ("optional/format/", "optional/format-", "optional/content")
LEAST_PERCENT = 85.0


class SuiteCase(NamedTuple):
    draft: str
    place: str
    schema: Any
    value: Any
    fits: bool


def suite_cases(suite: Path) -> Iterator[SuiteCase]:
    for draft, named in DRAFTS.items():
        folder = suite / "tests" / draft
        for path in sorted(folder.rglob("*.json")):
            file = path.relative_to(folder).as_posix()
            if file.startswith(LEFT_OUT):
                continue
            for group in json.loads(path.read_text("utf-8")):
                schema = group["schema"]
                if isinstance(schema, bool):
                    schema = {"allOf": [schema]}
                for test in group["tests"]:
                    place = f"{draft}/{file}: {group['description']}: {test['description']}"
                    yield SuiteCase(draft, place, {"$schema": named, **schema}, test["data"], test["valid"])


def main() -> int:
    checker = SchemaChecker(LinearPatterns())
    answers: dict[str, Counter[str]] = {draft: Counter() for draft in DRAFTS}
    wrong: list[str] = []
    unsaid: Counter[str] = Counter()
    for case in suite_cases(Path(sys.argv[1])):
        fit = checker.check_here(case.value, case.schema)
        answers[case.draft][fit.answer] += 1
        if fit.answer == "cannot_say":
            unsaid[case.place.partition(":")[0]] += 1
        elif (fit.answer == "fits") != case.fits:
            wrong.append(f"wrong {'refusal' if case.fits else 'acceptance'}: {case.place} ({fit.why})")
    everything = sum(answers.values(), Counter())
    for draft, counted in [*answers.items(), ("all", everything)]:
        percent = 100 * (1 - counted["cannot_say"] / max(counted.total(), 1))
        sys.stdout.write(f"{draft:14} {counted.total():5} {percent:6.1f} % definite\n")
    if "--unsaid" in sys.argv:
        sys.stdout.writelines(f"{count:5} {file}\n" for file, count in unsaid.most_common())
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    is_enough = everything["cannot_say"] <= everything.total() * (1 - LEAST_PERCENT / 100)
    return 0 if everything and is_enough and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())

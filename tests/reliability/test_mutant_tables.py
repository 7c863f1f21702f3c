"""The table of mutants that no test can notice is about code that is there."""

from tests.test_repository import ROOT
from tests.tools.mutant_tables import GATE, KNOWN_SURVIVORS, MODULES, PACKAGE, UNCHANGED

ROOMS = (GATE, GATE / "approvals", GATE / "audit", GATE / "policy", GATE / "secrets", PACKAGE / "guard")


def test_every_known_survivor_is_a_line_of_its_module() -> None:
    for name in {name for name, _, _ in KNOWN_SURVIVORS}:
        lines = {line.strip() for line in (ROOT / MODULES[name].path).read_text("utf-8").splitlines()}
        assert [code for module, code, _ in KNOWN_SURVIVORS if module == name and code not in lines] == [], name


def test_every_module_and_its_tests_are_there() -> None:
    named = [name for module in MODULES.values() for name in (str(module.path), *module.tests)]
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_module_of_the_gate_and_of_the_guards_calls_is_changed_or_has_a_reason() -> None:
    there = {file.relative_to(ROOT) for room in ROOMS for file in (ROOT / room).glob("[!_]*.py")}
    changed = {module.path for module in MODULES.values()}
    assert there - changed - UNCHANGED.keys() == set()
    assert UNCHANGED.keys() - there == set()
    assert UNCHANGED.keys() & changed == set()

import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from openai_responses_mcp.adapters.clocks import TOKYO
from openai_responses_mcp.cli import main
from openai_responses_mcp.commands.init import STARTER, maybe_days_apart
from openai_responses_mcp.config.loading import Flags, load
from openai_responses_mcp.config.settings import ModelProfiles, Profile, SearchSettings, Settings, UserLocation

SEARCH = SearchSettings(user_location=UserLocation(timezone="Asia/Tokyo"))
UNCOMMENTED = re.sub(r"(?m)^( *)# (?=[ ]*[a-z_]+:)", r"\1", STARTER)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "APPDATA": str(tmp_path / ".config")}


def test_the_file_is_written_where_it_is_looked_for(
    environ: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--init"], environ) == 0
    file = tmp_path / ".config/openai-responses-mcp/config.yaml"
    assert capfd.readouterr().out.startswith(f"{file} written. ")
    configuration = load(Flags(), environ)
    assert configuration.sources.yaml == str(file)
    assert configuration.settings == Settings(search=SEARCH)
    assert configuration.warnings == ()


def test_a_file_that_is_there_stays_as_it_is(
    environ: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("policy: {}\n")
    assert main(["--init", f"--config={file}"], environ) == 1
    assert capfd.readouterr().err == f"openai-responses-mcp: {file} exists already and was not changed\n"
    assert file.read_text() == "policy: {}\n"


@pytest.mark.parametrize("name", ["file/config.yaml", "nul\x00byte"])
def test_a_place_that_cannot_be_written_is_named(
    environ: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--init", f"--config={tmp_path / name}"], environ) == 1
    assert "cannot be written (" in capfd.readouterr().err


def test_commented_out_settings_show_the_defaults(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(UNCOMMENTED, "utf-8")
    settings = load(Flags(config=str(file)), environ).settings
    profiles = ModelProfiles(Profile(), Profile(background=True), Profile())
    assert settings == Settings()._replace(model_profiles=profiles, search=SEARCH)
    assert UNCOMMENTED.count("\n  answer_detailed:") == 1
    assert "\n  timezone: Asia/Tokyo" in UNCOMMENTED


def test_another_day_on_this_machine_is_said(environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--init"], environ | {"TZ": "Asia/Tokyo"}) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    assert main(["--init", "--config=~/two.yaml"], environ | {"TZ": "Europe/Berlin"}) == 0
    assert "Asia/Tokyo (search.timezone)" in capfd.readouterr().out.splitlines()[1]


def test_days_are_compared_as_they_are_now() -> None:
    morning = datetime(2026, 11, 18, 3, tzinfo=TOKYO)
    assert maybe_days_apart("Asia/Tokyo", {"TZ": "Europe/Berlin"}, morning) == (
        '"today" is 2026-11-18 in Asia/Tokyo (search.timezone), and 2026-11-17 on this machine (Europe/Berlin).',
        True,
    )
    assert maybe_days_apart("Asia/Tokyo", {"TZ": "Europe/Berlin"}, morning.replace(hour=12)) == (
        '"today" is the date in Asia/Tokyo (search.timezone). This machine (Europe/Berlin) has another date for 8 hours a day.',
        False,
    )
    assert maybe_days_apart("Asia/Tokyo", {"TZ": "Asia/Seoul"}, morning) is None
    unnamed = maybe_days_apart(
        "Pacific/Kiritimati", {"TZ": "nowhere"}, datetime(2026, 11, 18, 1, tzinfo=ZoneInfo("Pacific/Kiritimati"))
    )
    assert unnamed is not None
    assert "(nowhere)" not in unnamed.text

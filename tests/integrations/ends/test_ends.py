"""The low ends of the ranges are written down once, and the run for them can be told from its words."""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from pagein.errors import ConfigurationError
from pagein.integrations._versions import RANGES
from tests._support.oldest_releases import ENDS, run

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("name", ENDS)
def test_a_pin_is_the_lower_bound_of_its_extra_and_of_what_is_checked_at_run_time(name):
    wanted = " ".join(each for extra in ENDS[name].extra.split(",") for each in EXTRAS[extra])
    pins = dict(each.split("==") for each in ENDS[name].pins if "==" in each)
    assert pins
    for package, version in pins.items():
        lowest = re.search(rf"{package}>=([\d.]+)", wanted)[1]
        assert version in (lowest, f"{lowest}.0")
        (major, minor), below, extra = RANGES[package]
        assert version.startswith(f"{major}.{minor}.")
        assert (major, minor) < below
        assert f"<{below[0]}" in re.search(rf"{package}>=[\d.]+,(<[\d.]+)", wanted)[1]
        assert extra in ENDS[name].extra.split(",")


def test_every_framework_that_is_checked_has_a_low_end_and_tests():
    pinned = {each.split("==")[0] for end in ENDS.values() for each in end.pins}
    assert set(RANGES) - pinned == {"langchain-core"}  # comes with the others
    assert all((CHECKOUT / "tests/integrations" / each).is_dir() for end in ENDS.values() for each in end.tests)


def test_the_run_of_the_low_end_collects_tests(monkeypatch):
    run_process, commands = subprocess.run, []
    monkeypatch.setattr(venv, "create", lambda *words, **options: None)
    monkeypatch.setattr(subprocess, "run", lambda words, **options: commands.append(words) or run_process(["true"]))
    run("pydantic-ai", CHECKOUT)
    collected = run_process([sys.executable, *commands[-1][1:], "--collect-only", "-q", "-n0"], cwd=CHECKOUT)
    assert collected.returncode == 0


def test_what_cannot_be_run_is_told_before_anything_is_installed(tmp_path):
    with pytest.raises(ConfigurationError, match="no framework 'autogen'; there are smolagents"):
        run("autogen", CHECKOUT)
    with pytest.raises(ConfigurationError, match="is no checkout of pagein"):
        run("smolagents", tmp_path)

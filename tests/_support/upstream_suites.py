"""What the frameworks' own tests say of our classes: ``python -m tests._support.upstream_suites``, or with names behind it.

In a checkout. For each framework a fresh environment is made with pip, and the tests are taken from the release that is
installed there, as its authors published it; a minute or two each, and thrown away. Every failure is printed with its
reason. One without a reason makes the exit code 1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagein.errors import ConfigurationError
from tests._support.swapped import PLACE, REPORT

_SESSION_PRIVATE = r"has no attribute '_|no such table: agent_"


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of a framework that one class of ours stands in for.

    ``source`` is the distribution that has them and ``tests`` where, ``place`` a key of ``swapped.PLACES``; ``extra`` is
    ours and ``needs`` what they need besides. A failure whose message is like ``inside`` looked into the class that was
    replaced, and is not counted. ``reasons`` are those for the others, by what a test's name has in it.
    """

    source: str
    place: str
    tests: tuple[str, ...]
    extra: str
    needs: tuple[str, ...] = ()
    inside: str = r"^\Z"
    reasons: Mapping[str, str] = field(default_factory=dict)


_PLUGINS = ("pytest-asyncio", "pytest-mock", "pytest-timeout")

SUITES: Mapping[str, Suite] = {
    "smolagents": Suite(
        "smolagents",
        "smolagents",
        ("tests/test_memory.py", "tests/test_agents.py"),
        "smolagents,openai",
        (*_PLUGINS, "ddgs", "pandas", "markdownify"),
        inside="logging to terminal should be disabled",  # the fixture that does it is not published
    ),
    "langgraph-store": Suite(
        "langgraph-checkpoint",
        "langgraph-store",
        ("tests/test_store.py",),
        "langgraph,facts",
        (*_PLUGINS, "langgraph-checkpoint-sqlite"),
    ),
    "langgraph-store-sqlite": Suite(
        "langgraph-checkpoint-sqlite",
        "langgraph-store",
        ("tests/test_store.py", "tests/test_async_store.py"),
        "langgraph,facts",
        _PLUGINS,
        inside=r"has no attribute 'conn'",
        reasons={
            "test_sql_injection_vulnerability": (
                "expects ValueError for a filter's key with quotes in it; here a key is never part of a statement, and finds nothing"
            ),
            "test_no_running_loop": (
                "expects the sync verbs to be refused where a loop runs; here they work, and the file is reached at once"
            ),
        },
    ),
    "openai-agents": Suite(
        "openai-agents",
        "openai-agents",
        (
            "tests/memory/test_session.py",
            "tests/memory/test_session_limit.py",
            "tests/test_agent_runner.py",
            "tests/test_agent_runner_streamed.py",
            "tests/test_max_turns.py",
            "tests/test_native_tool_failure_history.py",
            "tests/test_programmatic_tool_calling.py",
            "tests/test_run_impl_resume_paths.py",
            "tests/test_soft_cancel.py",
            "tests/test_tool_batch_failure_history.py",
            "tests/test_tool_failure_boundaries.py",
        ),
        "openai-agents",
        (*_PLUGINS, "httpx", "inline-snapshot"),
        inside=_SESSION_PRIVATE,
        reasons={
            "closed_rejects_empty_add_items": "expects RuntimeError; here it is LogClosed",
            "failed_add_items_releases_write_lock": "expects TypeError; here it is FormatError, with the path",
        },
    ),
}
"""By name. The checkpointer's own conformance suite is a package, and stands apart: ``checkpointer``."""

_CHECKPOINTER = """
import asyncio, pathlib, sys, tempfile
from langgraph.checkpoint.conformance import checkpointer_test, validate
from pagein.integrations.langgraph import PageinSaver

@checkpointer_test(name="PageinSaver")
async def fresh():
    async with PageinSaver(pathlib.Path(tempfile.mkdtemp()) / "run.db") as made:
        yield made

report = asyncio.run(validate(fresh))
for name, each in report.results.items():
    print(f"  {name}: {each.tests_passed} of {each.tests_passed + each.tests_failed}")
    print(*(f"  failed: {one}" for one in each.failures or ()), sep="\\n", end="")
done = all(each.passed for each in report.results.values())
print("langgraph-checkpoint-conformance:", report.conformance_level() if done else "NOT PASSED")
sys.exit(not done)
"""


def run(name: str, checkout: Path) -> int:
    """0 where every failure of the suite has a reason. Raises ConfigurationError, CalledProcessError of pip."""
    if name not in (*SUITES, "checkpointer"):
        raise ConfigurationError(f"no report {name!r}; there are checkpointer, {', '.join(SUITES)}")
    if not (checkout / "pyproject.toml").is_file():
        raise ConfigurationError(f"{checkout} is no checkout of pagein")
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder) / "env", checkout, SUITES.get(name))
        if name == "checkpointer":
            return subprocess.run([python, "-c", _CHECKPOINTER], check=False).returncode
        suite = SUITES[name]
        source = _source(python, suite.source, Path(folder) / "source")
        return told(name, suite, outcomes(python, suite, source, Path(folder) / "report.json"))


def _environment(where: Path, checkout: Path, suite: Suite | None) -> str:
    venv.create(where, with_pip=True)
    python = str(where / "bin" / "python")
    extra, needs = ("langgraph", ("langgraph-checkpoint-conformance",)) if suite is None else (suite.extra, suite.needs)
    source = () if suite is None else (suite.source,)
    _pip(python, "install", f"{checkout}[{extra},testing]", *source, *needs)
    return python


def _source(python: str, package: str, where: Path) -> Path:
    """The published source of the release that is installed."""
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    _pip(python, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(where), f"{package}=={version}")
    (packed,) = where.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(where, filter="data")
    packed.unlink()
    (found,) = where.iterdir()
    return found


def _pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", arguments[0], "--quiet", *arguments[1:]], check=True)


def outcomes(python: str, suite: Suite, source: Path, report: Path) -> Mapping[str, tuple[str, str]]:
    """How each test ended that made one of ours: its name, ``passed``, ``failed`` or ``skipped``, and what it said.

    Raises ConfigurationError where they could not be run.
    """
    command = [python, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "tests._support.swapped", *suite.tests]
    root = Path(__file__).parents[2]
    surroundings = {**os.environ, "PYTHONPATH": str(root), PLACE: suite.place, REPORT: str(report)}
    done = subprocess.run(command, cwd=source, env=surroundings, check=False, capture_output=True, text=True)
    if done.returncode > 1:  # it is no verdict, but that they could not be run
        raise ConfigurationError(
            f"the tests of {suite.source} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    found: dict[str, tuple[str, str]] = json.loads(report.read_text("utf-8"))
    return found


def told(name: str, suite: Suite, found: Mapping[str, tuple[str, str]]) -> int:
    """Print the report of a suite; 0 where every failure has a reason, and anything passed."""
    failed = {test: said for test, (outcome, said) in found.items() if outcome == "failed"}
    inside = {test for test, said in failed.items() if re.search(suite.inside, said)}
    passed = sum(outcome == "passed" for outcome, _ in found.values())
    print(f"{name}: {passed} of {passed + len(failed) - len(inside)}")  # noqa: T201 - a command
    unexplained = 0
    for test, said in failed.items():
        reason = "not counted: it looks into the class that was replaced" if test in inside else _reason(suite, test)
        unexplained += not reason
        print(f"  {test}\n    {said}\n    {reason or 'NO REASON KNOWN'}")  # noqa: T201 - a command
    return int(unexplained > 0 or not passed)


def _reason(suite: Suite, test: str) -> str:
    return next((reason for part, reason in suite.reasons.items() if part in test), "")


def main(names: Sequence[str]) -> int:
    """0 where every report named, or all of them, has no failure without a reason."""
    return max([run(name, Path.cwd()) for name in names or ("checkpointer", *SUITES)], default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every code block of the README and of the docs runs."""

import re
import shlex
from pathlib import Path

import pytest

from pagein import cli as pagein
from tests._support.scripts import run_script

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUICK = ("README.md", "guide.md", "pagein demo")
"""The pages and the command that a quick run has too."""
RUN_BY_CI = ("pip install . && pagein demo", "pip install '.[dev]' && pytest")


def blocks(language: str) -> list[tuple[str, list[str]]]:
    found = [(page, FENCE.findall(page.read_text())) for page in PAGES]
    return [(page.name, [code for name, code in fences if name == language]) for page, fences in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_mark_of_a_merge(page):
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(), re.MULTILINE)


def slow_unless_quick(name):
    return () if name in QUICK else pytest.mark.slow


@pytest.mark.parametrize(
    ("page", "code"),
    [pytest.param(page, code, id=page, marks=slow_unless_quick(page)) for page, code in blocks("python") if code],
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, code, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(code))
    done = run_script(script, folder=tmp_path)
    assert done.returncode == 0, f"{page}: {done.stderr}"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=slow_unless_quick(line))
        for _, code in blocks("sh")
        for block in code
        for line in block.splitlines()
        if line
    ],
)
def test_the_commands_of_a_page_run(line, tmp_path, monkeypatch, capsys):
    if line in RUN_BY_CI:
        assert (ROOT / ".ci" / "run").read_text().count(line) == 1
        return
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    if words[:3] == ["python", "-m", "benchmarks"]:
        from benchmarks import __main__ as benchmarks
        from benchmarks import opening

        monkeypatch.setattr(opening, "OPENINGS", opening.OPENINGS[1:2])  # test_bench_open.py has the others
        code = benchmarks.main(words[3:])
    else:
        assert words[0] == "pagein"
        code = pagein.main(words[1:])
    assert code == 0, capsys.readouterr().err


def test_no_page_has_a_block_of_another_kind():
    kinds = {name for page in PAGES for name, _ in FENCE.findall(page.read_text())}
    assert kinds <= {"python", "sh", "text"}

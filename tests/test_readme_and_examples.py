"""The README's links and loop are the repository's, each example is listed and runs offline, the pictures are drawn."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests._support.scripts import run_script

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
WHEEL_SUFFIXES = {"", ".bz2", ".css", ".gz", ".html", ".js", ".json", ".md", ".py", ".svg", ".txt", ".typed"}
"""Suffixes of the package's files; "" is a licence."""
LOOP = ROOT / "examples" / "openai_loop.py"
EXCLUDED = {Path(line).name for line in re.findall(r"^  (\S+\.\w+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)}
"""Files of docs/ that the site leaves out."""


def run_loop(folder: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, LOOP, "--offline", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_loop_of_the_readme_is_the_examples():
    source = LOOP.read_text()
    loop = source[source.index("def run_agent") : source.index("def answer_offline")].strip()
    assert loop in README


@pytest.mark.slow
def test_the_loop_goes_on_after_a_crash_and_answers_from_page_three(tmp_path):
    assert run_loop(tmp_path, "--crash", "9").returncode == 137
    done = run_script(LOOP, "--offline", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "11 steps were recorded before" in done.stdout
    assert "signed by Ada Ferrante-Okafor" in done.stdout
    assert "0 over the window, 0 illegal" in done.stdout


def test_links_of_the_readme_are_absolute_and_lead_to_files():
    base = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    raw = base.replace("github.com", "raw.githubusercontent.com")
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert link.startswith("https://"), link
        for prefix in (f"{base}/blob/main/", f"{raw}/main/"):
            if link.startswith(prefix):
                path, _, anchor = link.removeprefix(prefix).partition("#")
                assert (ROOT / path).exists(), link
                assert not anchor or anchor in anchors(ROOT / path), link


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert target.name not in EXCLUDED, f"{page.name}: the site has no {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_pictures_are_as_their_source_draws_them():
    spec = spec_from_file_location("draw", ROOT / "docs" / "images" / "draw.py")
    draw = sys.modules["draw"] = module_from_spec(spec)
    spec.loader.exec_module(draw)
    for name, picture in draw.PICTURES.items():
        assert (draw.FOLDER / f"{name}.svg").read_text() == picture(), f"run {spec.origin}"


def test_every_example_is_in_the_index():
    index = (ROOT / "examples" / "README.md").read_text()
    assert set(re.findall(r"^\| \[(\w+\.\w+)\]", index, re.MULTILINE)) == {
        path.name for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb")
    }


def test_the_wheel_is_small_and_has_the_package_alone():
    package = ROOT / "src" / "pagein"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.suffix for path in files} <= WHEEL_SUFFIXES, {path.suffix for path in files} - WHEEL_SUFFIXES
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 1_535_000


def run_example(folder: Path, *words: str) -> str:
    done = run_script(ROOT / "examples" / words[0], *words[1:], folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_chat_keeps_the_facts_of_two_users_apart(tmp_path):
    lines = run_example(tmp_path, "chat_two_users.py").splitlines()
    assert [line.strip() for line in lines if line.startswith("  ")][2:] == ["I know of: pytest.", "I know of: Oslo."]


def test_the_coding_agent_repairs_every_module_and_knows_what_it_read_first(tmp_path):
    text = run_example(tmp_path, "coding_agent.py", "--offline", "--modules", "9")
    assert "9 of 9 modules repaired" in text
    assert "I worked on heron-4.2." in text
    assert "0 over the window, 0 illegal" in text


def test_the_editor_of_the_team_finds_what_the_researchers_read(tmp_path):
    text = run_example(tmp_path, "team.py")
    assert "norway: Bergen; iceland: Reykjavik; faroes: Torshavn" in text
    assert text.count("has 12 sections") == 3


@pytest.mark.slow
def test_an_agent_ends_at_the_window_alone_and_finishes_behind_the_proxy(tmp_path):
    alone, behind = run_example(tmp_path, "proxy_sdk.py", "--offline").splitlines()
    assert "prompt is too long" in alone
    assert behind.startswith("Done. 34 messages; x-pagein: view;")


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads((ROOT / "examples" / "what_is_in_context.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text("\n".join(cells))
    assert "entries are out of view" in run_example(tmp_path, str(script))

"""What users read has no private words, every error has its cure on one page, and the help speaks plainly."""

import ast
import inspect
import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import pagein
from pagein.cli import build_app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PRIVATE = re.compile(r"\b(?:verbs?|hosts?|hosting|house|rooms?|colou?rs?|told|held)\b", re.IGNORECASE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\s]*\)", re.MULTILINE | re.DOTALL)
PUBLIC_PACKAGES = [
    f"pagein.{name}" for name in ("backends", "facts", "formats", "memory", "models", "search", "server")
]
PUBLIC_PACKAGES += [
    f"pagein.integrations.{name}" for name in ("langchain", "langgraph", "openai_agents", "pydantic_ai", "smolagents")
]
SUBCLASS = re.compile(r"^class ([A-Z]\w+)\(([\w, ]+)\):", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_private_words(page):
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), page.read_text())
    lines = [
        f"{page.name}:{number}: {line}" for number, line in enumerate(prose.split("\n"), 1) if PRIVATE.search(line)
    ]
    assert not lines, "\n".join(lines)


def help_texts(app):
    for name in app:
        command = app[name]
        if not name.startswith("-"):
            yield name, command.help
            yield from help_texts(command)


def test_the_help_of_commands_has_no_private_words():
    texts = list(help_texts(build_app()))
    assert len(texts) > 20
    for name, text in texts:
        assert not PRIVATE.search(re.sub(r"--\w+", "", text)), f"pagein {name} --help"
        assert "For example:" in text or name in ("bench", "facts"), f"pagein {name} --help"


def test_the_reference_has_no_private_words():
    names = [name for name in pagein.__all__ if inspect.isclass(getattr(pagein, name))]
    for name in names:
        texts = [node.value for node in ast.walk(tree_of(getattr(pagein, name))) if isinstance(node, ast.Constant)]
        lines = [text for text in texts if isinstance(text, str) and PRIVATE.search(text)]
        assert not lines, f"{name}: {lines}"


def tree_of(value) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(value)))


def test_errors_have_no_private_words():
    for path in sorted((ROOT / "src").rglob("*.py")):
        raised = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)]
        for node in (part for statement in raised for part in ast.walk(statement)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = re.sub(r"\S+://\S+", "", node.value)
                assert not PRIVATE.search(text), f"{path.name}:{node.lineno}: {text}"


def error_names() -> set[str]:
    names = {"PageinError"}
    classes = [
        (name, {base.strip() for base in bases.split(",")})
        for path in (ROOT / "src").rglob("*.py")
        for name, bases in SUBCLASS.findall(path.read_text())
    ]
    while added := {name for name, bases in classes if bases & names} - names:
        names |= added
    return names


def test_every_error_has_its_cure_on_the_page():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert {name for name, _, _ in rows} | {"PageinError"} == error_names()


@pytest.mark.slow
def test_the_reference_has_every_public_name():
    names = set(re.findall(r"^::: (pagein[\w.]*\.\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE))
    assert {f"pagein.{name}" for name in pagein.__all__} <= names
    listed = {name.rpartition(".")[2] for name in names}
    for package in PUBLIC_PACKAGES:
        assert set(import_module(package).__all__) <= listed, package


def test_the_reference_has_every_name_that_a_page_imports():
    reference = (ROOT / "docs" / "reference.md").read_text()
    listed = set(re.findall(r"^::: pagein[\w.]*\.(\w+)$", reference, re.MULTILINE))
    blocks = (
        block
        for page in PAGES
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    )
    nodes = (node for block in blocks for node in ast.walk(ast.parse(block)))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module.startswith("pagein")]
    names = {alias.name for node in imports if not node.module.startswith("pagein.testing") for alias in node.names}
    assert len(names) > 40
    assert names <= listed, names - listed


def test_the_site_lists_every_page():
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {Path(path).name for path in listed} >= pages, pages - listed

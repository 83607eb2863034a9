"""The tests of a framework under the oldest release of it that is supported: ``python -m tests._support.oldest_releases smolagents``.

In a checkout. A fresh environment is made with pip for each framework, half a minute of downloads, and thrown away.
What pip picks by itself is the newest release, which the usual run tests; so both ends of each range are tested.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagein.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class End:
    """The oldest releases of one framework: our extra, what pip is told besides, and the folders of tests."""

    extra: str
    pins: tuple[str, ...]
    tests: tuple[str, ...]


ENDS: Mapping[str, End] = {
    "smolagents": End("smolagents,openai", ("smolagents==1.24.0",), ("smolagents",)),
    "langchain": End(
        "langchain,langgraph,facts",  # facts brings NumPy, which a store with an embedder needs
        (
            *("langchain==1.2.18", "langgraph==1.1.10", "langgraph-checkpoint==3.0.0"),
            *("langgraph-checkpoint-conformance", "langchain-openai"),  # the example with an endpoint needs the last
        ),
        ("langchain", "langgraph"),
    ),
    "openai-agents": End("openai-agents", ("openai-agents==0.22.0",), ("openai_agents",)),
    "pydantic-ai": End("pydantic-ai,openai", ("pydantic-ai-slim==2.62.0",), ("pydantic_ai",)),
}
"""By framework. The pins are the lower bounds of the extras in pyproject.toml; a test holds them to that."""

TOOLS = ("pytest-timeout>=2.3", "pytest-xdist>=3.6")


def run(name: str, checkout: Path) -> int:
    """The exit code of pytest for one framework at its low end. Raises ConfigurationError, CalledProcessError of pip."""
    if name not in ENDS:
        raise ConfigurationError(f"no framework {name!r}; there are {', '.join(ENDS)}")
    end = ENDS[name]
    folders = [str(checkout / "tests" / "integrations" / each) for each in end.tests]
    if not all(Path(each).is_dir() for each in folders):
        raise ConfigurationError(f"{checkout} is no checkout of pagein: run this where tests/ is")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        wanted = [f"{checkout}[{end.extra},testing]", *end.pins, *TOOLS]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        command = [python, "-m", "pytest", *folders]
        return subprocess.run(command, cwd=checkout, check=False).returncode


def main(names: Sequence[str]) -> int:
    """0 where every framework named, or all of them, passes at its low end."""
    return max([run(name, Path.cwd()) for name in names or tuple(ENDS)], default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

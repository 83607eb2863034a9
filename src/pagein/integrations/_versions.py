"""Which releases of the frameworks are known, and tested with at both ends."""

from __future__ import annotations

import importlib.metadata
import re

from pagein.errors import ConfigurationError

RANGES: dict[str, tuple[tuple[int, int], tuple[int, int], str]] = {
    "langchain": ((1, 2), (2, 0), "langchain"),
    "langchain-core": ((1, 0), (2, 0), "langchain"),
    "langgraph": ((1, 1), (2, 0), "langgraph"),
    "langgraph-checkpoint": ((3, 0), (5, 0), "langgraph"),
    "openai-agents": ((0, 22), (0, 25), "openai-agents"),
    "pydantic-ai-slim": ((2, 64), (3, 0), "pydantic-ai"),
    "smolagents": ((1, 24), (1, 28), "smolagents"),
}
"""For each distribution the first release that is supported, the first that is not any more, and our extra."""


def checked_release(package: str, found: str | None = None) -> None:
    """Returns where the release is a known one; ``found`` is the installed one unless it is given.

    Raises ConfigurationError naming the release and the range.
    """
    lowest, below, extra = RANGES[package]
    wanted = f"{package}>={_said(lowest)},<{_said(below)}"
    if found is None:
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise ConfigurationError(
                f"{package} is not installed: pip install 'pagein[{extra}]' ({wanted})"
            ) from None
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or not lowest <= (int(numbers[1]), int(numbers[2])) < below:
        raise ConfigurationError(
            f"{package} {found} is installed, this release of pagein works with {wanted}: "
            f"pip install '{wanted}', or upgrade pagein"
        )


def _said(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

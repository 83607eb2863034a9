"""The supported releases of the frameworks; both ends of each range are tested."""

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
    "pydantic-ai-slim": ((2, 62), (3, 0), "pydantic-ai"),
    "smolagents": ((1, 24), (1, 28), "smolagents"),
}
"""For each distribution: the first supported release, the first unsupported one after it, and pagein's extra."""


def require_release(package: str, installed: str | None = None) -> None:
    """Raise ConfigurationError, naming the release and the range, unless the release of a package is supported.

    ``installed`` is by default the installed release.
    """
    lowest, below, extra = RANGES[package]
    supported = f"{package}>={_version_text(lowest)},<{_version_text(below)}"
    if installed is None:
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise ConfigurationError(
                f"{package} is not installed: pip install 'pagein[{extra}]' ({supported})"
            ) from None
    numbers = re.match(r"(\d+)\.(\d+)", installed)
    if numbers is None or not lowest <= (int(numbers[1]), int(numbers[2])) < below:
        raise ConfigurationError(
            f"{package} {installed} is installed, this release of pagein works with {supported}: "
            f"pip install '{supported}', or upgrade pagein"
        )


def _version_text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

"""Which versions of smolagents this is made for, and tested with at both ends."""

from __future__ import annotations

import importlib.metadata
import re

from pagein.errors import ConfigurationError

LOWEST, BELOW = (1, 24), (1, 28)
"""The first minor release that is supported, and the first that is not any more."""


def check_version(found: str | None = None) -> None:
    """Returns where smolagents is there in a version we know; ``found`` is the installed one unless it is given.

    Raises ConfigurationError naming the version and the range.
    """
    wanted = f"smolagents>={_said(LOWEST)},<{_said(BELOW)}"
    if found is None:
        try:
            found = importlib.metadata.version("smolagents")
        except importlib.metadata.PackageNotFoundError:
            cure = f"smolagents is not installed: pip install 'pagein[smolagents]' ({wanted})"
            raise ConfigurationError(cure) from None
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or not LOWEST <= (int(numbers[1]), int(numbers[2])) < BELOW:
        raise ConfigurationError(
            f"smolagents {found} is installed, this release of pagein works with {wanted}: "
            f"pip install '{wanted}', or upgrade pagein"
        )


def _said(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

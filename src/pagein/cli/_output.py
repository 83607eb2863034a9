"""What is printed, and how: results on stdout, progress and errors on stderr, colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.box import SIMPLE, SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))
"""Characters that move a terminal's cursor or change its colours; tab and newline stay."""


def console(*, stderr: bool = False) -> Console:
    """A console on what stdout or stderr is now. Prints text as it is: no markup, no guessed colours."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def clean(text: str) -> str:
    """The text as any terminal and any encoding can show it."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode()


def show(text: str) -> None:
    """Print text exactly; what the encoding of stdout lacks as an escape, and no control codes on a terminal."""
    out = sys.stdout
    text = clean(text) if out.isatty() else text
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if not text.endswith("\n"):
        out.write("\n")


def show_json(value: Any) -> None:
    """Print a value as JSON, in ASCII, so that it survives every pipe."""
    show(json.dumps(value, indent=2))


def complain(message: str) -> None:
    """Say on stderr, in one line, what is wrong."""
    line = clean(" ".join(message.split()))
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"pagein: {line}\n".encode(encoding, "backslashreplace").decode(encoding))


def hang_up() -> None:
    """Let nothing be written any more to a pipe that nobody reads."""
    # The interpreter flushes stdout once more at its end, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(title: str, *columns: str, left: int = 1) -> Table:
    """An empty table; the first ``left`` columns are text, the others numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD)
    for index, name in enumerate(columns):
        text = index < left
        made.add_column(name, justify="left" if text else "right", overflow="fold" if text else "ellipsis")
    return made


def row(into: Table, *cells: str) -> None:
    """Add a row of plain text."""
    into.add_row(*(Text(clean(cell)) for cell in cells))


def facts(title: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """A table of one fact a row."""
    made = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=SIMPLE)
    made.add_column()
    made.add_column(justify="right")
    for name, value in pairs:
        row(made, name, value)
    return made


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, done: int | None = None, *, of: int | None = None, what: str | None = None) -> None:
        """One further; or to ``done`` of ``of``, at ``what``."""
        ...


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Advance]:
    """A progress bar on stderr while the block runs; nothing where stderr is no terminal."""
    screen = console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(what, total=total)

        def advance(done: int | None = None, *, of: int | None = None, what: str | None = None) -> None:
            if done is None:
                bar.advance(task)
            else:
                bar.update(task, completed=done, total=of, description=what)

        yield advance


def number(value: float | None) -> str:
    """A count with its thousands, or a dash."""
    return "-" if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """A share with three decimals, or a dash where there was nothing to share."""
    return "-" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """A share in percent, rounded down, so that 100 % is all; or a dash."""
    return "-" if value is None else f"{int(value * 1000) / 10:.1f} %"


def short(value: int) -> str:
    """A large count in thousands or millions.

    >>> short(950), short(12_400), short(3_120_000)
    ('950', '12.4k', '3.12M')
    """
    if value < 1_000:
        return str(value)
    return f"{value / 1e3:.1f}k" if value < 1_000_000 else f"{value / 1e6:.2f}M"


def compact(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""Print results on stdout, progress and errors on stderr, colour only on a terminal.

Every command prints through this module: what a tool or a user wrote may hold sequences that a terminal obeys, or that
turn the order in which text is read. They are removed, in a pipe too, as its end may be a terminal. ``--json`` has all.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, Protocol

from rich.box import SIMPLE, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_BIDI = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *_BIDI))
"""Control characters of a terminal, without tab and newline, and those that turn the order in which text is read."""


_END_OF_CALENDAR = 1e11
"""Seconds since the epoch, in the year 5138: what is later is no time of an entry."""

WRAPPED = 24
"""Columns of a terminal that a text which wraps has at least."""

HEADER_WIDTH = 12
"""Columns of a terminal above which the header over numbers wraps between its words."""


class _PlainConsole(Console):
    """A console that prints no control character of a text, wherever it stands."""

    def render_str(self, text: str, **options: Any) -> Text:
        """As rich renders it, without control characters."""
        return super().render_str(strip_control(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints it. A table has its title in full. Where it does not fit, each row is text: no name or number is cut."""
        if not (len(objects) == 1 and isinstance(objects[0], Table)):
            super().print(*objects, **options)
            return
        (table,) = objects
        title, table.title = table.title, None
        if title:
            super().print(Text(str(title), "bold"), soft_wrap=True)
        if _least_width(table) <= self.width:
            super().print(table)
        else:
            lines = (
                fill(line, self.width, subsequent_indent="  ", break_on_hyphens=False) for line in _as_lines(table)
            )
            super().print(Text("\n".join(lines) + "\n"), soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Let the command end as where another line met the closed pipe; rich ends it with exit code 1."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console on the present stdout or stderr that prints text without control characters, markup or highlighting."""
    return _PlainConsole(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def strip_control(text: str) -> str:
    """Remove control characters, and escape what UTF-8 cannot encode."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode()


def print_text(text: str) -> None:
    """Print text without control characters, escaping what the encoding of stdout lacks."""
    out, text = sys.stdout, strip_control(text)
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if not text.endswith("\n"):
        out.write("\n")


def print_json(value: Any) -> None:
    """Print a value as ASCII JSON, which survives every pipe."""
    print_text(json.dumps(value, indent=2, default=_bytes_as_text))


def print_json_line(value: Any) -> None:
    """Print a value as ASCII JSON on one line."""
    print_text(json.dumps(value, separators=(",", ":")))


class LogFormatter(logging.Formatter):
    """Formats a record as ``print_error`` prints an error."""

    def format(self, record: logging.LogRecord) -> str:
        """The record on lines without control characters."""
        return strip_control(f"pagein: {super().format(record)}")


@contextmanager
def logs_on_stderr() -> Iterator[None]:
    """Write the library's warnings on stderr while the block runs, unless the program configured logging."""
    logger = logging.getLogger("pagein")
    if logger.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter())
    logger.addHandler(handler)
    logging.getLogger("pagein.view").setLevel(logging.ERROR)  # a command that has a budget is to compact
    try:
        yield
    finally:
        logger.removeHandler(handler)


def print_error(message: str) -> None:
    """Print an error on stderr, on one line."""
    line = strip_control(" ".join(message.split()))
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"pagein: {line}\n".encode(encoding, "backslashreplace").decode(encoding))


def silence_stdout() -> None:
    """Discard further output to a closed pipe."""
    # Python flushes stdout once more at exit, which would print an error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def new_table(title: str, *columns: str, text_columns: int = 1, wraps: Sequence[str] = ()) -> Table:
    """An empty table; the first ``text_columns`` columns have text, the others numbers.

    The columns of ``wraps`` wrap, by default the last one with text. Names and numbers in the others stay whole.
    """
    wraps = wraps or columns[text_columns - 1 : text_columns]
    table = Table(
        title=strip_control(title), title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD
    )
    for index, name in enumerate(columns):
        is_text = index < text_columns
        header = name if is_text else fill(name, HEADER_WIDTH, break_long_words=False)
        table.add_column(header, justify="left" if is_text else "right", overflow="fold", no_wrap=name not in wraps)
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text."""
    table.add_row(*(Text(strip_control(cell)) for cell in cells))


def print_table(
    title: str,
    *columns: str,
    rows: Iterable[Sequence[str]],
    empty: str = "",
    text_columns: int = 1,
    wraps: Sequence[str] = (),
) -> None:
    """Print a table of these rows, see ``new_table``; without any ``empty``, where that is given."""
    table = new_table(title, *columns, text_columns=text_columns, wraps=wraps)
    for row in rows:
        add_row(table, *row)
    console().print(empty if empty and not table.row_count else table)


def pairs_table(title: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """A table of names with their values."""
    table = Table(title=strip_control(title), title_justify="left", title_style="bold", show_header=False, box=SIMPLE)
    table.add_column()
    table.add_column(justify="right")
    for name, value in pairs:
        add_row(table, name, value)
    return table


def _least_width(table: Table) -> int:
    """The width at which every name and number of a table is whole, and what wraps has words on its lines."""
    cells = [[str(cell) for cell in (*str(column.header).splitlines(), *column.cells)] for column in table.columns]
    widths = [max(map(cell_len, texts), default=0) for texts in cells]
    least = [
        width if column.no_wrap else min(width, WRAPPED) for width, column in zip(widths, table.columns, strict=True)
    ]
    return sum(width + 2 for width in least) + len(least) + 1


def _as_lines(table: Table) -> Iterator[str]:
    """Each row of a table as text: each cell that is not empty, with the name of its column."""
    heads = [str(column.header).replace("\n", " ") for column in table.columns]
    for row in zip(*(map(str, column.cells) for column in table.columns), strict=True):
        cells = (f"{head} {cell}".strip() for head, cell in zip(heads, row, strict=True) if cell)
        yield ("; " if table.show_header else ": ").join(cells)


class Advance(Protocol):
    """Callback that moves a progress bar."""

    def __call__(self, position: int | None = None, total: int | None = None, *, label: str | None = None) -> None:
        """Advance by one, or to ``position`` of ``total``."""
        ...


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Advance]:
    """Show a progress bar on stderr while the block runs; nothing where stderr is no terminal."""
    terminal = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(strip_control(label), total=total)

        def advance(position: int | None = None, total: int | None = None, label: str | None = None) -> None:
            if position is None:
                bar.advance(task)
            else:
                bar.update(task, completed=position, total=total, description=label and strip_control(label))

        yield advance


def format_count(value: float | None) -> str:
    """Format a count with thousands separators; a dash for None."""
    return "-" if value is None else f"{value:,.0f}"


def format_share(value: float | None) -> str:
    """Format a share with three decimals; a dash for None."""
    return "-" if value is None else f"{value:.3f}"


def format_percent(value: float | None) -> str:
    """Format a share in percent, rounded down, so that 100 % is all; a dash for None."""
    return "-" if value is None else f"{int(value * 1000) / 10:.1f} %"


def count_of(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun.

    >>> count_of(1, "fact"), count_of(2_000, "entry", "entries")
    ('1 fact', '2,000 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_time(at: float, *, seconds: bool = False) -> str:
    """Format a time in UTC; a time that no calendar has as its number.

    >>> format_time(1_700_000_000.5), format_time(1e300)
    ('2023-11-14 22:13', '1e+300')
    """
    pattern = "%Y-%m-%d %H:%M" + ":%S" * seconds
    return time.strftime(pattern, time.gmtime(at)) if 0 <= at < _END_OF_CALENDAR else f"{at:g}"


def format_short(value: int) -> str:
    """Format a large count in thousands or millions.

    >>> format_short(950), format_short(12_400), format_short(3_120_000)
    ('950', '12.4k', '3.12M')
    """
    if value < 1_000:
        return str(value)
    return f"{value / 1e3:.1f}k" if value < 1_000_000 else f"{value / 1e6:.2f}M"


def compact_json(value: Any) -> str:
    """Format a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_bytes_as_text)


def _bytes_as_text(value: Any) -> str:
    """The base64 of bytes, which requests of Gemini and Bedrock have, as JSON has none. Raises TypeError for other values."""
    return base64.b64encode(value).decode()

"""The errors in a tool's result: the lines by which a program says what failed, not the traceback around them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pagein.context.salience.lines import FILE_LINE, NO_ERROR, has_part
from pagein.events.identifiers import parse_arguments
from pagein.events.quoting import unquote_lines
from pagein.events.shell import COMPANIONS, READERS, command_of, programs_of
from pagein.events.steps import Observation, ToolCall, as_text

MAX_ERRORS_PER_RESULT = 3
"""Errors of one result, its last ones: a traceback ends with its reason, a test run with its list."""

SCANNED_CHARS = 40_000
"""Characters at each end of a result that are searched."""

ERROR_MAX_CHARS = 300
"""Characters of an error."""

EXIT_CODE: Final = r"exit(?:ed)?(?: with)?[ _-](?:code|status)\W{1,3}"
"""The pattern of what stands before a program's exit code."""

_HAS_FAILED = re.compile(rf"(?i)<returncode>\s*[1-9]|\b{EXIT_CODE}[1-9]")
_FAILURE_WORD = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|fail(?:ed|ure)?|fatal|denied|refused|no such|not found|cannot)\b"
)
_FAILURE_PARTS = (
    "error", "exception", "fail", "fatal", "denied", "refused", "no such", "not found", "cannot", "panic",
    "critical", "caused by: ", "_test.go:", "not ok ", " \u203a ", '" 5',
)  # fmt: skip
"""Every line that is an error of a result that did not fail has one of these in lower case."""

_DECORATION = re.compile(
    r"\x1b\[[\d;]*[mK]|^(?:[\w.-]{1,40} +\| )?\d{4}-\d\d-\d\d[T ][\d:.,]+Z? |^[\w.-]{1,40} +\| (?!\d)"
)
"""Colours, and what a runner puts before each line: the time, the name of a service."""

_PREFIX = re.compile(r"(?:E {2,}|> |- E\d{3} |\[\d+\] )")
"""Marks that pytest, quotes and linters put before an error."""

_ERROR = re.compile(
    r"""
    (?!(?:print|raise|echo|log\w*|return)\b|[-+\#*@]|/[/*])(?:
      [^:\s][^:]{0,60}\b(?:error|exception|failed|failure|fatal|panic)\b[^:]{0,24}:\ +(?!(?:null|none|false|0|\[\]|\{\})\W*$)\S
    | (?:[\w$]+\.)*\w*(?:error|exception)(?::\s*(?=\S)|$)
    | \[?(?:error|fatal|failure)\]?:?\s+\S
    | (?:FAILED|FAIL:|ERROR:)\s+[^\s(]
    | npm\ err!\s+\S
    | [^:\s]+:\d+(?::\d+)?:\ (?:fatal\ )?error:?\ \S
    | [^:\s]{1,80}:\ .{0,160}\b(?:not\ found|no\ such\ file\ or\ directory|permission\ denied|connection\ refused|is\ a\ directory)$
    | [^:\s]{1,40}:\ (?:cannot|can't|unable\ to|unrecognized|unknown|invalid)\ \S
    | file\ \S+\ not\ found
    | segmentation\ fault
    | thread\ '.{1,40}'\ panicked\ at
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""The beginning of a line that is an error, whatever the result is."""

_TOOL_ERROR = re.compile(
    r"""
    E\ {3,}(?:assert\b|[\w.]+:\ )\ *\S | \S{1,200}::\S{1,200}\ (?:FAILED|ERROR)\b
    | \ *---\ FAIL:\ \S | \s+\S+_test\.go:\d+:\ \S | test\ \S+\ \.\.\.\ FAILED | thread\ '.{1,200}'\ panicked\ at
    | FAIL\s+[\w./-]+\.\w+ | \ *\u25cf\ .+\ \u203a\ .+ | \ +\d+:\d+\ +error\ +\S | not\ ok\ \d | .{0,400}<(?:failure|error)\ message=
    | Caused\ by:\ \S | npm\ error\ \S | (?:\#?\d[.\d]*\ )?(?:ERROR|E):\ \S
    | .{0,3}\d{4}-\d\d-\d\d[T\ ]\S+\ .{0,24}?\b(?:ERROR|FATAL|CRITICAL|Error:) | \#\#\[error\]\S
    | .{0,300}\ HTTP/\d[.\d]*"\ 5\d\d\b | .{0,200}(?:\blevel=|"(?:level|severity)":\ ?")(?i:error|fatal|critical|panic)\b
    """,
    re.VERBOSE,
)
"""The beginning of a line by which a test runner, a linter, a builder or a log says what failed."""

_TEST_LOG = re.compile(r"\s+\S+_test\.go:\d+: ")
"""A line that a test of Go logs, which says what failed only where something did."""

_NOISE = re.compile(
    r"(?i)\s*(?:</?[^<>]{1,40}>\s*)*(?:\d{1,3}\s*(?:</[^<>]{1,40}>)?)?|Traceback \(most.*|During handling of.*|The above exception.*"
    r"|\[ERROR\] (?:(?:->|re-run|to see|for more|failures:).*)?|={3,}.*={3,}|-{3,}(?! FAIL: ).*|\S+:\d+: \w+|.*\b(?:0|no) (?:errors?|failures?|failed)\b.*|(?:FAILED|ERROR) \(\w+=\d.*"
    r"|output:|process exited with code \d+|(?:chunk id|wall time|original token count|total output lines): .*"
)
"""Lines around an error that say nothing of their own: marks, rules, counts, places, and what Codex puts before an output."""

_VARYING = re.compile(
    r"[\d:/lL](?i:(?<=0)x[0-9a-f]+|(?<=l)(?<!\w.)ine \d+|(?<=:)\d+(?=[:)\s]|$)|(?<=/)tmp/[\w.-]+|(?<=\d)(?<!\w.)(?:"
    r"\d*(?:\.\d+)?\s?(?:ms|s|seconds?|minutes?)\b|\d{3}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?))"
)
"""What differs between two runs of the same command with the same error. It begins with its first characters: without, a
search takes four times as long."""


_OWN_ERRORS = COMPANIONS.union(("bash", "sh", "zsh"))
"""The programs whose errors are not text of a file: those, and the shell that does not find one."""

_RUN_OUTPUT = re.compile(r"(?i)\.(?:log|out|err|txt)\b|/tmp/|\boutput\b")
"""Names of files in which a program's output is kept: an error in one did happen."""


def errors_of_readers(call: ToolCall, errors: tuple[str, ...]) -> tuple[str, ...]:
    """Return the errors in a call's result; where it only prints files, those of the printing programs: the others are text.

    >>> show = ToolCall("1", "bash", '{"command": "cd src && nl -ba a.ts | sed -n 1,40p"}')
    >>> errors_of_readers(show, ("function f(error: unknown): string {", "nl: a.ts: No such file or directory"))
    ('nl: a.ts: No such file or directory',)
    """
    if not _shows_files(call):
        return errors
    return tuple(error for error in errors if error.partition(":")[0].rpartition("/")[2] in _OWN_ERRORS)


def _shows_files(call: ToolCall) -> bool:
    command = command_of(parse_arguments(call.arguments))
    if _RUN_OUTPUT.search(command):
        return False
    programs = programs_of(command)
    return not programs.isdisjoint(READERS) and programs <= COMPANIONS


def has_failed(observation: Observation) -> bool:
    """True for a result with the status of an error, and for one that begins with an exit code other than 0."""
    return observation.status == "error" or _HAS_FAILED.search(as_text(observation.content)[:200]) is not None


def find_errors(text: str, *, failed: bool) -> tuple[str, ...]:
    r"""Find the last distinct errors of a result, each on one line.

    A failed result without a line that is an error has its last line that reads like one, or else its last line.

    >>> find_errors("Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'id'", failed=False)
    ("KeyError: 'id'",)
    >>> find_errors("E       TypeError: no\n=== 1 failed in 2s ===", failed=True)
    ('TypeError: no',)
    """
    errors: dict[str, str] = {}
    lines = unquote_lines(both_ends(text)).splitlines()
    if "FAIL" not in text and "panic" not in text:
        lines = [line for line in lines if not _TEST_LOG.match(line)]
    for error in _find_lines(lines):
        # One exception behind another, or a program that prints what it caught, says the same twice.
        errors.setdefault(error_key(error.partition(": ")[2] or error), error)
        if len(errors) == MAX_ERRORS_PER_RESULT:
            break
    if not errors and failed:
        said = [line.strip() for line in lines if not _NOISE.fullmatch(line.strip())]
        last = next((line for line in reversed(said) if _FAILURE_WORD.search(line)), "")
        return tuple(line[:ERROR_MAX_CHARS] for line in [last or said[-1]]) if said else ()
    return tuple(reversed(errors.values()))


def error_key(error: str) -> str:
    """Return what two occurrences of the same error share: its words, without addresses, places, times and dates.

    >>> error_key("bash: line 12: mvn: command not found") == error_key("bash: line 9: mvn: command not found")
    True
    """
    return " ".join(_VARYING.sub("#", error).casefold().split())


def clip_line(text: str, characters: int) -> str:
    """Return a text on one line, cut to so many characters.

    >>> clip_line("one  two three", 8) == "one two" + chr(0x2026)
    True
    """
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}\u2026"


def _find_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines that are errors, the last first."""
    for line in reversed(lines):
        if is_error(line):
            if not _is_known(line):
                line = _DECORATION.sub("", line)  # noqa: PLW2901 - what is behind it says what failed
            prefix = _PREFIX.match(line)
            yield " ".join(line[prefix.end() if prefix else 0 :][:ERROR_MAX_CHARS].split())


def is_error(line: str) -> bool:
    """True for a line by which a program says what failed.

    >>> is_error("E       assert 502 == 200"), is_error("    raise ValueError(name)")
    (True, False)
    """
    if not (has_part(line, _FAILURE_PARTS) or "E   " in line or "E: " in line):
        return False
    if FILE_LINE.match(line):
        return False
    if _is_known(line):
        return True
    plain = _DECORATION.sub("", line)
    return plain != line and _is_known(plain)


def _is_known(line: str) -> bool:
    prefix = _PREFIX.match(line)
    bare = line[prefix.end() if prefix else 0 :].rstrip()
    is_known = _ERROR.match(bare) or _TOOL_ERROR.match(line)
    return bool(is_known) and not _NOISE.fullmatch(bare) and not NO_ERROR.fullmatch(bare)


def both_ends(text: str) -> str:
    """Return a text, or the beginning and the end of one that is too long to be read whole."""
    return text if len(text) <= 2 * SCANNED_CHARS else f"{text[:SCANNED_CHARS]}\n{text[-SCANNED_CHARS:]}"

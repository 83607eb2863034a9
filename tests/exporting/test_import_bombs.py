"""A file made to fill the memory is refused before its entries are opened."""

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import LogUnreadable
from pagein.events.entries import Compaction, Replacement
from pagein.events.steps import Image, TaskStep
from pagein.log import codec, export
from pagein.log.export import parse_session


def lines_of(count, size=30_000):
    log = InMemoryLog()
    picture = TaskStep((Image(b"\x89PNG" * size, "image/png"),))
    log.append([picture] * count, after=0, at=1.0)
    return list(export.export_lines(log, export.ExportCounts()))


def test_one_blob_that_is_named_many_times_is_refused(monkeypatch):
    lines = lines_of(40)
    assert len(parse_session(lines, "run").rows) == 40
    monkeypatch.setattr(export, "EXPANDED_MIN_LIMIT_BYTES", 1_000_000)
    with pytest.raises(LogUnreadable, match="again and again"):
        parse_session(lines, "run")


def test_a_body_that_expands_too_far_is_refused(monkeypatch):
    log = InMemoryLog()
    # A compaction's body is deflated: 4 MB of one letter take a few kB in the file.
    log.append([Compaction((Replacement(0, 1, (), "x" * 8_000),) * 500, "p", "r", 2, 1)], after=0, at=1.0)
    lines = list(export.export_lines(log, export.ExportCounts()))
    assert sum(map(len, lines)) < 50_000
    assert len(parse_session(lines, "run").rows) == 1
    monkeypatch.setattr(export, "EXPANDED_MIN_LIMIT_BYTES", 1_000_000)
    with pytest.raises(LogUnreadable, match="expands too far"):
        parse_session(lines, "run")
    monkeypatch.setattr(codec, "INFLATED_MAX_BYTES", 1_000_000)
    with pytest.raises(LogUnreadable):
        parse_session(lines, "run")


def test_pictures_of_their_own_are_no_bomb(monkeypatch):
    monkeypatch.setattr(export, "EXPANDED_MIN_LIMIT_BYTES", 0)
    log = InMemoryLog()
    log.append([TaskStep((Image(bytes([n]) * 9_000, "image/png"),)) for n in range(20)], after=0, at=1.0)
    assert len(parse_session(list(export.export_lines(log, export.ExportCounts())), "run").rows) == 20

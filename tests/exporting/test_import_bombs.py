"""A file made to fill the memory is refused before its entries are opened."""

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import LogUnreadable
from pagein.events.steps import Image, TaskStep
from pagein.log import export
from pagein.log.export import parse_session


def lines_of(count, size=30_000):
    log = InMemoryLog()
    picture = TaskStep((Image(b"\x89PNG" * size, "image/png"),))
    log.append([picture] * count, after=0, at=1.0)
    return list(export.export_lines(log))


def test_one_blob_that_is_named_many_times_is_refused(monkeypatch):
    lines = lines_of(40)
    assert len(parse_session(lines, "run").rows) == 40
    monkeypatch.setattr(export, "EXPANDED_MIN_LIMIT_BYTES", 1_000_000)
    with pytest.raises(LogUnreadable, match="again and again"):
        parse_session(lines, "run")


def test_pictures_of_their_own_are_no_bomb(monkeypatch):
    monkeypatch.setattr(export, "EXPANDED_MIN_LIMIT_BYTES", 0)
    log = InMemoryLog()
    log.append([TaskStep((Image(bytes([n]) * 9_000, "image/png"),)) for n in range(20)], after=0, at=1.0)
    assert len(parse_session(list(export.export_lines(log)), "run").rows) == 20

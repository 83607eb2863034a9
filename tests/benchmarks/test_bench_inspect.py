"""``python -m benchmarks inspect``: every measure of the table is taken, and says what it may be."""

import json

import pytest

pytest.importorskip("starlette")
from benchmarks import inspector
from benchmarks.__main__ import main


def test_the_bench_measures_every_view(capsys, monkeypatch):
    monkeypatch.setattr(inspector, "SAMPLES", 2)
    monkeypatch.setattr(inspector, "_measure_pages", lambda *_: ())
    assert main(["inspect", "--runs", "3", "--requests", "12", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {"first view of 3 runs", "any late request, highest", "search, first", "its bytes a request"} <= set(rows)
    for row in rows.values():
        assert row["value"] > 0
        assert row["ratio"] == pytest.approx(row["value"] / row["target"])
    assert rows["search, first"]["processor"] > 0
    assert rows["the pages, gzipped"]["ratio"] <= 1
    assert rows["its bytes a request"]["ratio"] <= 1
    assert rows["the table of requests, of a turn"]["value"] < 1


def test_numbers_that_make_no_store_are_refused(capsys):
    assert main(["inspect", "--requests", "3"]) == 1
    assert "10 or more" in capsys.readouterr().err

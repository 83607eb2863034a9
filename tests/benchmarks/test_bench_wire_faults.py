"""bench wire-faults: what a model behind the proxy misses is what it would miss with the library."""

import json

import pytest

from benchmarks import __main__ as benchmarks

pytestmark = pytest.mark.slow


def test_a_model_behind_the_proxy_misses_what_it_misses_with_the_library(capsys):
    assert benchmarks.main(["wire-faults", "--budget", "4000", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    library, proxy = figures["library"], figures["proxy"]
    assert library["requests"] == proxy["requests"] > 30
    assert proxy["raised"] == library["raised"] == []
    assert proxy["over_budget"] == proxy["illegal"] == 0
    for kind in ("bare", "grounded", "lines"):
        assert abs(proxy["faults"][kind] - library["faults"][kind]) <= 0.002


def test_a_table_without_json(capsys):
    assert benchmarks.main(["wire-faults", "--budget", "6000"]) == 0
    assert {"library", "proxy"} <= set(capsys.readouterr().out.split())

"""bench open: what going on with a run costs, in a file and on a server, and the bytes it takes."""

import contextlib
import json

import pytest

from benchmarks import opening
from benchmarks.__main__ import main
from benchmarks.opening import bench_opening

pytestmark = pytest.mark.slow

LABELS = {
    "open, 30 steps", "first view, 30 steps", "open + first view, 30 steps", "fork at 30 steps", "messages, 30 steps",
    "the index of the archive",
}  # fmt: skip


def rows(place, **options):
    found = {
        each.what: each for each in bench_opening(place, (30,), 1, options.get("budgets", (3_000,)), lambda *told: None)
    }
    assert found.keys() >= LABELS
    return found


def test_a_run_is_opened_and_weighed_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "OPENINGS", opening.OPENINGS[::2])

    @contextlib.contextmanager
    def place():
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        yield str(folder / "run.db"), folder, None

    found = rows(place, budgets=(3_000, 5_000))
    logs = {what: each for what, each in found.items() if what.startswith("the log")}
    assert [what.split(",")[1] for what in logs] == [" 3", " 5"]
    assert all(each.value > 0 and each.ratio > 1 for each in logs.values())
    assert "messages" in {each.against for each in logs.values()}


@pytest.mark.slow
def test_a_run_is_opened_and_weighed_on_a_server(postgres, monkeypatch):
    monkeypatch.setattr(opening, "OPENINGS", opening.OPENINGS[:1])  # the others are opened in a file

    @contextlib.contextmanager
    def place():
        yield postgres.url, None, None

    found = rows(place)
    [log] = [each for what, each in found.items() if what.startswith("the log, 3,000 tokens")]
    assert log.value > 0.1
    assert found["open, 30 steps"].value > 0


@pytest.mark.slow
def test_the_command_shows_both_budgets(capsys, monkeypatch):
    costs = {"open": 0.1, "view": 0.2, "both": 0.3, "processor": 0.2, "peak": 60.0}
    monkeypatch.setattr(opening, "_measure_calls", lambda *run: costs)  # processes are started in a file
    assert main(["open", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["store"], told["budgets"]) == ("sqlite", [80_000, 500_000])
    assert sum(each["what"].startswith("the log") for each in told["rows"]) == 2


def test_a_budget_that_is_none_is_refused(capsys):
    assert main(["open", "--budget", "0"]) == 1
    assert "budget" in capsys.readouterr().err

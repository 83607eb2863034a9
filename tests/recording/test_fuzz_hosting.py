"""The fuzzer of hosting, at a size for every run of the tests; and that it sees what breaks."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz.__main__ import fuzz_hosting, main
from benchmarks.fuzz.hosting import WAYS
from pagein.events.protocol import fingerprint
from pagein.memory.operations import client_lists, ingest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_each_word_is_recorded_once_whatever_the_host_hands_over():
    report = fuzz_hosting(seed=1, count=36)
    assert report.failures == []
    assert set(report.played) == set(WAYS)


SEEDS_OF = ("openai", "anthropic", "openai-responses")
"""The formats that these seeds were found with."""


@pytest.mark.parametrize("seed", [571547, 500147])
def test_of_two_messages_with_the_same_words_either_may_be_left_out_beside_one_of_the_hosts(seed):
    assert fuzz_hosting(seed=seed, count=1, ways=["trimmed, reminder"], formats=SEEDS_OF).failures == []


@pytest.mark.parametrize("seed", [580096, 542800])
def test_results_of_open_calls_are_new_though_an_earlier_step_has_the_same(seed):
    assert fuzz_hosting(seed=seed, count=1, ways=["seeds"], formats=SEEDS_OF).failures == []


def test_the_fuzzer_sees_a_list_that_is_taken_for_new(monkeypatch):
    for module in (ingest, client_lists):
        monkeypatch.setattr(module, "fingerprint", lambda item: fingerprint(item)[:1] + b"another hash....")
    assert fuzz_hosting(seed=5, count=6).failures


def nothing_is_shorter(*_, **__):
    return False


@pytest.mark.parametrize(
    ("way", "name", "bug"),
    [
        ("cleared", "_read_results", nothing_is_shorter),
        ("joined, words", "_read_joined", nothing_is_shorter),
        ("divided", "_read_joined", nothing_is_shorter),
    ],
)
def test_the_fuzzer_sees_a_client_that_is_taken_for_an_editor(monkeypatch, way, name, bug):
    assert not fuzz_hosting(seed=4, count=6, ways=[way]).failures
    monkeypatch.setattr(client_lists._Reader, name, bug)
    assert fuzz_hosting(seed=4, count=6, ways=[way]).failures


def test_the_command_exits_with_1_where_a_talk_failed(monkeypatch, capsys):
    assert main(["hosting", "--seed", "3", "--count", "2"]) == 0
    assert "2 runs, 0 failed" in capsys.readouterr().out

    def lose_words(talk):
        raise AssertionError(f"the words of {talk.seed} were lost")

    monkeypatch.setattr("benchmarks.fuzz.__main__.play_talk", lose_words)
    assert main(["hosting", "--count", "1"]) == 1
    assert "seed 1, new, anthropic: the words of 1 were lost" in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "code", "says"), [(ROOT, 0, "1 runs, 0 failed"), (None, 1, "Clone it")])
def test_the_fuzzers_run_by_the_name_of_the_package(tmp_path, folder, code, says):
    command = [sys.executable, "-m", "pagein.testing.fuzz", "hosting", "--seed", "1", "--count", "1"]
    done = subprocess.run(command, cwd=folder or tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr

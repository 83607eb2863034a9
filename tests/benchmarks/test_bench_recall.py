"""The protocols of LoCoMo and LongMemEval on conversations small enough to count by hand."""

import gzip
import json

import pytest

from benchmarks.__main__ import main
from benchmarks.recall.locomo import bench_locomo
from benchmarks.recall.longmemeval import bench_longmemeval, by_session, by_turn
from benchmarks.recall.measures import ndcg, quantile, recall, recall_all, recall_any, within
from benchmarks.recall.searchers import Remembering, any_of, searchers
from benchmarks.search import Steps, bench_search
from pagein.errors import ConfigurationError, FormatError
from pagein.evaluation.conversations import haystack_of, read_locomo, read_longmemeval, read_pool
from pagein.testing.search_indexes import CountingEmbedder

pytestmark = pytest.mark.slow

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a heron."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a photo of a grey bird"},
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I sold the kayak."}],
            "session_3_date_time": "9:00 am on 2 June, 2023",
        },
        "qa": [
            {"question": "Who adopted a heron?", "answer": "Ada", "evidence": ["D1:1"], "category": 4},
            {"question": "What became of the kayak and the bird?", "evidence": ["D2:1; D:1:2"], "category": 1},
            {"question": "Who won?", "adversarial_answer": "?", "evidence": [], "category": 5},
        ],
    }
]


def chat(id, evidence, *, role="user", question="Which heron?"):
    turns = [
        {"role": "user", "content": "My heron is named Igor.", "has_answer": evidence and role == "user"},
        {"role": "assistant", "content": "Igor the heron, noted.", "has_answer": evidence and role == "assistant"},
    ]
    return {
        "question_id": id,
        "question_type": "single-session-user",
        "question": question,
        "question_date": "2023/06/28 (Wed) 20:07",
        "haystack_dates": ["2023/06/28 (Wed) 20:06"],
        "haystack_session_ids": [f"{id}_s"],
        "haystack_sessions": [turns],
        "answer_session_ids": [f"{id}_s"],
    }


POOL = {
    f"pool_{number}": {
        "date": "2023/04/10 (Mon) 17:50",
        "turns": [
            {"role": "user", "content": f"Tell me of ferry {number}."},
            {"role": "assistant", "content": f"Ferry {number} leaves at noon."},
        ],
    }
    for number in range(30)
}


@pytest.fixture
def files(tmp_path):
    """The three files, one of them gzipped."""
    locomo, chats, pool = tmp_path / "locomo.json", tmp_path / "chats.json.gz", tmp_path / "pool.json"
    locomo.write_text(json.dumps(LOCOMO))
    questions = [chat("q1", True), chat("q2", True, role="assistant"), chat("q3_abs", True), chat("q4", False)]
    chats.write_bytes(gzip.compress(json.dumps(questions).encode()))
    pool.write_text(json.dumps(POOL))
    return locomo, chats, pool


# Measures


def test_recall_counts_the_share_all_or_any():
    ranked = ["a", "b", "c"]
    assert recall(ranked, {"a", "c"}, 2) == 0.5
    assert (recall_all(ranked, {"a", "c"}, 2), recall_all(ranked, {"a", "c"}, 3)) == (0.0, 1.0)
    assert (recall_any(ranked, {"c", "d"}, 2), recall_any(ranked, {"c", "d"}, 3)) == (0.0, 1.0)


def test_gain_is_longmemevals():
    assert ndcg(["x", "a"], {"a"}, 5) == 1.0, "rel1 + rel2 / log2(2)"
    assert ndcg(["x", "y", "a"], {"a"}, 5) == pytest.approx(0.6309, abs=1e-4)
    assert ndcg(["x", "y", "a"], {"a"}, 2) == 0.0
    assert ndcg(["a", "b", "x"], {"a", "b", "c"}, 3) == pytest.approx(2 / 2.6309, abs=1e-4)


def test_a_context_skips_what_does_not_fit():
    scores, tokens = {"long": 3.0, "short": 2.0, "mid": 1.0}, {"long": 90, "short": 5, "mid": 20}
    assert within(scores, tokens, {"long"}, 100, density=0.0) == 1.0
    assert within(scores, tokens, {"mid"}, 100, density=0.0) == 0.0
    assert within(scores, tokens, {"short", "mid"}, 70, density=0.0) == 1.0
    assert within(scores, tokens, {"short", "mid"}, 100, density=1.0) == 1.0


def test_quantiles_are_values_that_were_measured():
    assert quantile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert quantile([], 0.5) == 0.0


# Data


def test_locomo_is_read_by_its_protocol(files):
    (conversation,) = read_locomo(files[0])
    assert [turn.text for turn in conversation.turns] == [
        '(1:56 pm on 8 May, 2023) Ada said, "I adopted a heron."',
        '(1:56 pm on 8 May, 2023) Bo said, "Lovely!" and shared a photo of a grey bird.',
        '(9:00 am on 1 June, 2023) Bo said, "I sold the kayak."',
    ]
    assert [question.evidence for question in conversation.questions] == [{"D1:1"}, {"D2:1", "D1:2"}, set()]
    assert [question.kind for question in conversation.questions] == ["single-hop", "multi-hop", "adversarial"]


def test_longmemeval_leaves_out_what_its_protocol_leaves_out(files):
    chats = read_longmemeval(files[1])
    assert [each.question.id for each in by_session(chats)] == ["q1"]
    assert [each.question.id for each in by_turn(chats)] == ["q1", "q2"]
    assert chats[0].question.evidence == {"q1_s_0"}
    assert chats[1].question.evidence == {"q2_s_1"}


def test_distractors_are_the_same_for_everyone(files):
    one, pool = read_longmemeval(files[1])[0], read_pool(files[2])
    assert list(haystack_of(one, pool, 5)) == ["q1_s", "pool_8", "pool_0", "pool_13", "pool_2"]
    assert len(haystack_of(one, pool, None)) == 31
    assert len(haystack_of(one, pool, 500)) == 31
    assert list(haystack_of(one, {**pool, "q1_s": pool["pool_0"]}, 1)) == ["q1_s"]


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"qa": 3}]', "not json", '{"a": {"turns": 3}}'])
@pytest.mark.parametrize("read", [read_locomo, read_longmemeval])
def test_a_file_that_is_none_says_so(tmp_path, read, content):
    path = tmp_path / "file.json"
    path.write_text(content)
    if content == "{}":
        assert read(path) == ()
    else:
        with pytest.raises(FormatError, match=r"file\.json"):
            read(path)
    with pytest.raises(ConfigurationError):
        read(tmp_path / "missing.json")


# The benchmarks


def test_locomo_measures_every_system(files):
    conversations = read_locomo(files[0])
    systems = searchers(CountingEmbedder())
    found = {name: bench_locomo(conversations, opened) for name, opened in systems.items()}
    assert list(found) == ["words and meaning", "words", "bare FTS5", "newest"]
    assert all(each.questions == 2 for each in found.values())
    assert found["words"].means["R@5"] == 1.0
    assert found["words"].kinds["multi-hop"]["questions"] == 1
    assert found["bare FTS5"].means["E@500"] == 1.0


def test_longmemeval_measures_sessions_and_turns(files):
    chats, pool = read_longmemeval(files[1]), read_pool(files[2])
    ticks = []
    for opened in searchers(CountingEmbedder()).values():
        result = bench_longmemeval(chats, lambda each: haystack_of(each, pool, 10), opened, lambda: ticks.append(1))
        assert (result.questions, result.turn_questions) == (1, 2)
        assert result.sessions["all@5"] == result.sessions["any@5"] == 1.0
        assert result.turns["E/@1000"] == 1.0
    assert len(ticks) == 4 * 3


def test_a_text_is_embedded_once_however_many_archives_it_is_in():
    counting = CountingEmbedder()
    kept = Remembering(counting)
    assert kept.embed(["a", "b", "a"])[0] == kept.embed(["a"])[0]
    assert counting.texts == ["a", "b"]


def test_the_bare_query_is_quoted():
    assert any_of('What of "NEAR" and the heron\'s OR?') == '"near" OR "heron" OR "s"'
    assert any_of("who is it") == '"who" OR "is" OR "it"'


def test_search_is_measured_beside_plain_fts5():
    rows = bench_search(400, 3, 10, lambda *_: None, vectors=True)
    assert [each.name for each in rows] == ["pagein", "pagein with vectors", "bare FTS5", "tantivy"]
    assert all(each.found > 0.8 and each.p95 > 0 for each in rows if not each.note)


def test_made_up_steps_are_the_same_each_time():
    assert list(Steps(20)) == list(Steps(20))
    place, query = Steps(20).pick_queries(5)[0]
    assert set(query.split()) <= set(list(Steps(20))[place].split())


# The commands


def test_the_commands_print_tables(files, capsys):
    locomo, chats, pool = map(str, files)
    assert main(["recall", "locomo", locomo, "--embedder", "none"]) == 0
    assert main(["recall", "longmemeval", chats, "--pool", pool, "--haystack", "8", "--embedder", "none"]) == 0
    assert main(["search", "--documents", "200", "--queries", "5"]) == 0
    printed = capsys.readouterr().out
    assert all(each in printed for each in ("R@10", "E@1000", "all@5", "p95 ms", "multi-hop"))


def test_the_commands_print_json(files, capsys):
    locomo, chats, _ = map(str, files)
    assert main(["recall", "locomo", locomo, "--embedder", "none", "--systems", "words", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["words"]["means"]["R@5"] == 1.0
    assert main(["recall", "longmemeval", chats, "--embedder", "none", "--no-turns", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["words"]["turns"] == {}
    assert main(["search", "--documents", "50", "--queries", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["name"] == "pagein"


@pytest.mark.parametrize(
    "command",
    [
        ["recall", "locomo", "{locomo}", "--embedder", "cook"],
        ["recall", "locomo", "{locomo}", "--systems", "cook"],
        ["recall", "locomo", "missing.json"],
        ["recall", "longmemeval", "{chats}", "--haystack", "many"],
        ["recall", "longmemeval", "{pool}", "--haystack", "5"],
        ["search", "--documents", "0"],
    ],
)
def test_what_cannot_be_measured_is_one_line(files, capsys, command):
    names = dict(zip(("locomo", "chats", "pool"), map(str, files), strict=True))
    assert main([each.format(**names) for each in command]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("pagein: ")
    assert printed.err.count("\n") == 1

"""The branches of a session: the names and the meaning of the SDK's own AdvancedSQLiteSession, nothing destroyed."""

import asyncio

import pytest
from agents.extensions.memory import AdvancedSQLiteSession

from pagein.errors import ConfigurationError, UnknownBranch
from pagein.integrations.openai_agents.session import PageinSession

pytestmark = pytest.mark.slow


def do(awaitable):
    return asyncio.run(awaitable)


def turn(number):
    return [{"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": f"Answer {number}"}]


ALL = [item for number in (1, 2, 3) for item in turn(number)]


@pytest.fixture(params=["turn by turn", "all at once", "one taken back"])
def session(request, tmp_path):
    """Three turns, however they came to stand there."""
    made = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    if request.param == "turn by turn":
        for number in (1, 2, 3):
            do(made.add_items(turn(number)))
    else:
        do(made.add_items(ALL))
    if request.param == "one taken back":
        do(made.add_items([{"role": "user", "content": "Never mind."}]))
        do(made.pop_item())
        do(made.pop_item())
        do(made.add_items(ALL[-1:]))
    yield made
    made.close()


def contents(items):
    return [each["content"] for each in items]


def names(session):
    return {each["branch_id"]: each["message_count"] for each in do(session.list_branches())}


def test_a_branch_has_what_came_before_its_turn_and_goes_its_own_way(session, tmp_path):
    assert do(session.create_branch_from_turn(2, "other")) == "other"
    assert do(session.get_items()) == turn(1)
    do(session.add_items([{"role": "user", "content": "Question 2, but better"}]))
    assert contents(do(session.get_items())) == ["Question 1", "Answer 1", "Question 2, but better"]
    assert do(session.get_items(branch_id="main")) == ALL
    assert do(session.get_items(2, "main")) == ALL[-2:]
    do(session.switch_to_branch("main"))
    assert do(session.get_items()) == ALL
    assert do(session.get_items(branch_id="other"))[2]["content"] == "Question 2, but better"
    assert session.memory.verify().ok
    do(session.switch_to_branch("other"))
    session.close()
    again = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    assert contents(do(again.get_items())) == ["Question 1", "Answer 1", "Question 2, but better"]
    assert names(again) == {"main": 6, "other": 3}
    again.close()


def test_the_model_is_shown_the_branch_alone(session):
    do(session.create_branch_from_turn(2, "other"))
    shown = str(session.memory.view().messages())
    assert "Answer 1" in shown
    assert "Question 2" not in shown
    assert not [hit for hit in session.memory.recall("Question 3") if "Question 3" in hit.text]


def test_items_are_taken_back_on_a_branch_alone(session):
    do(session.create_branch_from_turn(3, "other"))
    assert do(session.pop_item()) == ALL[3]
    assert do(session.get_items()) == ALL[:3]
    assert do(session.get_items(branch_id="main")) == ALL
    do(session.create_branch_from_turn(1, "empty"))
    assert do(session.get_items()) == []
    assert do(session.pop_item()) is None


def test_turns_are_listed_and_found_by_what_the_user_said(session):
    turns = do(session.get_conversation_turns())
    assert [(each["turn"], each["full_content"]) for each in turns] == [(at, f"Question {at}") for at in (1, 2, 3)]
    assert all(each["can_branch"] and each["timestamp"] for each in turns)
    assert [each["turn"] for each in do(session.find_turns_by_content("question 3"))] == [3]
    made = do(session.create_branch_from_content("Question 3"))
    assert made == "branch-1"
    assert do(session.get_items()) == ALL[:4]
    with pytest.raises(ConfigurationError, match="no turn of the user's has 'penguins'"):
        do(session.create_branch_from_content("penguins"))


def test_a_branch_is_left_for_good_and_its_name_stays_taken(session):
    do(session.create_branch_from_turn(2, "other"))
    with pytest.raises(ConfigurationError, match="the run goes on with 'other'"):
        do(session.delete_branch("other"))
    do(session.delete_branch("other", force=True))
    assert names(session) == {"main": 6}
    assert do(session.get_items()) == ALL
    for gone in (session.switch_to_branch("other"), session.delete_branch("other"), session.get_items(None, "other")):
        with pytest.raises(UnknownBranch, match="'other'"):
            do(gone)
    with pytest.raises(ConfigurationError, match="there is a branch 'other' already"):
        do(session.create_branch_from_turn(2, "other"))
    with pytest.raises(ConfigurationError, match="'main'"):
        do(session.delete_branch("main", force=True))


def test_what_cannot_be_forked_changes_nothing(session):
    for number in (0, 4, "2"):
        with pytest.raises(ConfigurationError, match="this branch has no turn"):
            do(session.create_branch_from_turn(number))
    with pytest.raises(ConfigurationError, match="a branch's name"):
        do(session.create_branch_from_turn(2, " "))
    assert names(session) == {"main": 6}
    assert do(session.get_items()) == ALL


def test_a_cleared_session_has_one_empty_branch(session):
    do(session.create_branch_from_turn(2, "other"))
    do(session.clear_session())
    assert names(session) == {"main": 0}
    do(session.add_items(turn(9)))
    assert do(session.get_items()) == turn(9)


def test_the_verbs_take_what_the_sdks_own_session_takes(session, tmp_path):
    """The same moves in both, the same items and the same lists."""
    theirs = AdvancedSQLiteSession(session_id="ann", db_path=tmp_path / "theirs.db", create_tables=True)
    do(theirs.add_items(ALL))
    for each in (session, theirs):
        do(each.create_branch_from_turn(3, "b"))
        do(each.add_items([{"role": "user", "content": "On b"}]))
        do(each.create_branch_from_content("Question 2", "c"))
        do(each.delete_branch("b"))
    assert do(session.get_items()) == do(theirs.get_items())
    assert do(session.get_items(branch_id="main")) == do(theirs.get_items(branch_id="main"))
    ours, others = ({row.pop("branch_id"): row for row in do(each.list_branches())} for each in (session, theirs))
    assert ours.keys() == others.keys() == {"main", "c"}
    for name, row in ours.items():
        assert row.keys() == others[name].keys()
        assert {**row, "created_at": 0} == {**others[name], "created_at": 0}
    mine, other = (do(each.get_conversation_turns("main")) for each in (session, theirs))
    assert [{**row, "timestamp": 0} for row in mine] == [{**row, "timestamp": 0} for row in other]
    theirs.close()

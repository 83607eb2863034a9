"""Every policy that has a name keeps the contract."""

import pytest

from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.testing.policies import PolicyTests


class Named(PolicyTests):
    @pytest.fixture
    def policy(self):
        return policy_named(self.named)


class TestLadder(Named):
    named = "ladder"


@pytest.mark.slow
class TestClip(Named):
    named = "clip"


class TestMask(Named):
    named = "mask"


@pytest.mark.slow
class TestReasoning(Named):
    named = "reasoning"


class TestWindow(Named):
    named = "window"


@pytest.mark.slow
class TestPrune(Named):
    named = "prune"


@pytest.mark.slow
class TestProjection(Named):
    named = "projection"


@pytest.mark.slow
class TestUsers(Named):
    named = "users"


class TestRounds(Named):
    named = "rounds"


@pytest.mark.slow
class TestShortLong(Named):
    named = "short_long"


@pytest.mark.slow
class TestRolling(Named):
    named = "rolling"


class TestTiers(Named):
    named = "tiers"


class TestChat(Named):
    named = "chat"


class TestRelevance(Named):
    named = "relevance"


def test_every_named_policy_is_tried():
    assert {suite.named for suite in Named.__subclasses__()} == set(POLICIES)

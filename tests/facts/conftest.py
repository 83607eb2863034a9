"""Fixtures for facts: a store of their own, and a clock that is set."""

import pytest
from facts_play import Clock, Store

from pagein.facts.owners import Owners
from pagein.facts.store import Facts
from pagein.tokens.encodings import Encoding


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def facts_of(store, clock):
    """Opens facts in one store: ``facts_of(user="alice")``."""

    def open_facts(session="s", *, tenant="", settings=None, model=None, embedder=None, **owners):
        whose = Owners(session, tenant=tenant, **owners)
        return Facts(store.opener(tenant), whose, settings, model=model, embedder=embedder, clock=clock)

    return open_facts


@pytest.fixture
def facts(facts_of):
    return facts_of(user="alice")


@pytest.fixture(scope="session")
def counter():
    return Encoding("o200k_base")

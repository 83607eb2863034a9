"""No conversation of one owner has the session of another's, whatever they are called."""

from hypothesis import example, given
from hypothesis import strategies as st

from pagein.integrations._owners import OWNERS, OwnedConversation

NAMES = st.lists(st.sampled_from(["user", "task", "=", "/", "%", "3D", "ann", "#1"]), min_size=1, max_size=5).map(
    "".join
)


@st.composite
def conversations(draw):
    owners = tuple((kind, draw(NAMES)) for kind in OWNERS if draw(st.booleans()))
    return OwnedConversation(draw(NAMES), owners=owners)


@given(conversations(), conversations())
@example(OwnedConversation("t", owners=(("user", "ann"),)), OwnedConversation("user=ann/t"))
@example(OwnedConversation("user=ann/t"), OwnedConversation("user%3Dann/t"))
def test_two_conversations_have_two_sessions(one, other):
    assert (one.session == other.session) == (one == other)


def test_an_ordinary_name_is_the_session_s():
    assert OwnedConversation("ann: 50 % = half").session == "ann: 50 % = half"
    assert OwnedConversation("t", owners=(("user", "ann"),)).session == "user=ann/t"

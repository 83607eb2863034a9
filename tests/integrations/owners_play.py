"""Two users in one process, one after the other in every turn, under the same name of a conversation."""

USERS = ("ann", "bob/../ann", "ann/x")
SECRETS = {user: f"The password of mine is heron-{4411 + number}." for number, user in enumerate(USERS)}
TURNS = 5


def talk(say, *, sent):
    """Let all users talk by turns: ``say(user, text)`` runs a turn, ``sent()`` is everything the model was sent in it."""
    for turn in range(TURNS):
        for user in USERS:
            text = SECRETS[user] if turn == 0 else f"I prefer tabs. Turn {turn} of {user}: what is my password?"
            say(user, text)
            shown = sent()
            assert text in shown
            for other in USERS:
                if other != user:
                    assert SECRETS[other] not in shown, f"{user} was shown what {other} said"
                    assert f"of {other}:" not in shown

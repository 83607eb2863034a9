"""What a framework keeps open for its users: at most so many, and never closed while a call uses it."""

import threading

from pagein.integrations._threads import MAX_OPEN, OpenConversations


def test_what_is_in_use_is_not_the_one_to_close():
    opened = OpenConversations()
    opened.update((number, number) for number in range(MAX_OPEN - 1))
    assert opened.first_to_close() is None
    opened["last"] = 1
    assert opened.first_to_close() == 0
    with opened.using(0), opened.using(1), opened.using(1):
        assert opened.first_to_close() == 2
        with opened.using(1):
            opened.move_to_end(2)
        assert opened.first_to_close() == 3
    assert opened.first_to_close() == 0


def test_uses_of_many_threads_are_counted():
    opened = OpenConversations()
    opened.update((number, number) for number in range(MAX_OPEN))

    def use():
        for _ in range(300):
            with opened.using(0):
                assert opened.first_to_close() != 0

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened.first_to_close() == 0

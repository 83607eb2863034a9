"""The layout: text marked as data stays data."""

from pagein.context.view.layout import as_data


def test_hostile_spaces_do_not_hang_a_turn():
    hostile = ("<" + " " * 200_000 + "/" + " " * 200_000) * 3
    assert as_data("memory", hostile).count(hostile) == 1  # quadratic, it would outlast the test's time
    assert "&lt; / memory>" in as_data("memory", "x < / memory> y")

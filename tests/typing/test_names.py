"""The names that type checkers and editors know are those of the registries."""

from typing import get_args

from pagein.context.compaction.base import PolicyName
from pagein.context.compaction.registry import POLICIES
from pagein.formats import FORMATS, FormatName


def test_formats_and_policies_have_the_names_of_their_registries() -> None:
    assert get_args(FormatName) == tuple(FORMATS)
    assert set(get_args(PolicyName)) == set(POLICIES)

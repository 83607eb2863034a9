"""The command line as a call: its exit code, and what it printed."""

import pytest

from pagein.cli import main


@pytest.fixture
def run(capsys):
    def command(*words):
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return command

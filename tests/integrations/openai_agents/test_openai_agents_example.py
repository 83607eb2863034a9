"""The examples of both frameworks run offline and say what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai_agents_report.py", "pydantic_ai_report.py"])
def test_the_example_answers_from_page_3(name):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=True, timeout=100
    )
    assert "Page 3 was signed by Ada Ferrante-Okafor" in done.stdout

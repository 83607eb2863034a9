"""The example runs offline and says what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "pydantic_ai_report.py"


@pytest.mark.slow
def test_the_example_answers_from_page_3():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=100
    )
    assert "Page 3 was signed by Ada Ferrante-Okafor" in done.stdout

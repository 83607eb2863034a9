"""The fuzzers by the package's name: ``python -m pagein.testing.fuzz hosting --seed 1 --count 100``, in a checkout.

They are in ``benchmarks/fuzz``, outside the package: the providers' SDKs and a second tokenizer judge the requests.
"""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec

FUZZERS = "benchmarks.fuzz"


def main() -> int:
    """Run the fuzzers with this process's arguments; return 1 where there is no checkout."""
    if find_spec("benchmarks") is None:
        sys.stderr.write(
            "The fuzzers are in the repository, not in the package. Clone it, pip install '.[dev]', and run this there.\n"
        )
        return 1
    runpy.run_module(FUZZERS, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

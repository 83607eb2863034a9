"""``python -m pagein`` is the ``pagein`` command."""

from pagein.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

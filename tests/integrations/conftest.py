"""Makes the players beside it importable from every framework's tests."""

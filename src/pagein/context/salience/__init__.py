"""How likely the run needs a line or an identifier again, and which lines to keep in an extract."""

"""What every package uses: the version, lazy attributes, checks of values."""

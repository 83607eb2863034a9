"""Code that every package uses: version, lazy attributes, flows, retries, checks of values."""

"""Other people's loops: each framework's own memory type over our log. Import the one you use by its name."""

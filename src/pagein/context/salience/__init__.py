"""Salience: estimates which lines and identifiers the run needs again, and selects the lines of an extract."""

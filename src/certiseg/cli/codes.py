"""Exit codes of the commands, beside 0 and 1, which says that a check has failed."""

BAD_INPUT = 2
LEFT_OUT = 3
"""A run has ended, but some images could not be used."""
ENGINE_LOST = 4
"""Nobody is left who draws."""
BUG = 70
INTERRUPTED = 130

"""Ids known before the insert. PYTEST_DONT_REWRITE: others import it before pytest."""

__version__ = "0.1.0"

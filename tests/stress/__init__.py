"""Processes and threads that compete for one counter, get killed, and fork.

    python -m tests.stress --database sqlite|postgres|mariadb [--seconds N | --full]

Servers come from ``HILO_TEST_POSTGRES`` and ``HILO_TEST_MARIADB``. The run makes a
database of its own and drops it.
"""

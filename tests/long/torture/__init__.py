"""A random driver over all that users do to ids, and over all that happens to them.

    python -m tests.long.torture --database DATABASE [--seconds N | --full]
    python -m tests.long.torture --database postgres --seed 7 --plan [SEAT]
    python -m tests.long.torture --database postgres --seed 7 --replay SEAT

What each process does is a pure function of the seed and of its seat, and so is the
row of faults. Which process comes first where two meet is the operating system's
choice, so a seed repeats the operations of a run, not their interleaving.

PostgreSQL and MariaDB are servers of the run's own, since it kills them.
"""

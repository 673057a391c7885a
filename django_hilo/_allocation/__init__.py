"""Memory: counters, the ranges a process holds, refills and explicit ids."""

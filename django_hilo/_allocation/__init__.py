"""Memory: targets, the ranges a process holds, refills and explicit ids."""

"""Memory: counters, the ranges a process holds, refills and explicit ids.

What this process knows of a counter's numbers: those *seen* were reserved or used once,
so its later ranges start above them; *stored* is the least that the row's Max can be;
*burnt* ones were taken out of a range that a rollback may take back, and this process
never gives them again; *skipped* ones were left out by a reservation that found Max
below them: once it is committed, no process gets them; *explicit* ones are of ids that
callers chose.
"""

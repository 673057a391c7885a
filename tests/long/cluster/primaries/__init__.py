"""Clusters whose nodes all take writes, and Django processes on each of their nodes."""

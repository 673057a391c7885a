"""Connections, retries, errors and rollbacks of the databases."""

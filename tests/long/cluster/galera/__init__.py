"""Three nodes of MariaDB Galera, and Django processes on each of them."""

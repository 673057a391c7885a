"""Two MariaDB servers with asynchronous replication: who tells what went wrong."""

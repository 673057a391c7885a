"""MariaDB with a replica, by the commands of docs/how-to/mariadb-replication.md."""

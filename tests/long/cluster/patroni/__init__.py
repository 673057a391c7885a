"""PostgreSQL under Patroni: three nodes, one etcd, HAProxy."""

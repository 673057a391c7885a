"""PostgreSQL: two sites that both write, and a primary that fails."""

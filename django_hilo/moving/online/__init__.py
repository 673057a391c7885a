"""The move on PostgreSQL without long locks: columns beside the old ones, then a swap.

Each phase may be repeated. Up to the swap old programs read and write as ever, and all
of it can be dropped again.
"""

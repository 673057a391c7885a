"""The numbers of processes: by them plans are made and journals are named."""

WEB = 0
# Strangers and administrators, whom the supervisor starts, have no plan.
FIRST_GUEST = 900_000_000
ALONE = 999_999_999
_CHILDREN = 1_000


def child_seat(seat: int, thread: int, fork: int) -> int:
    """Return the seat of a child of a fork; those of others are under 10,000."""
    return (seat * 10 + thread) * _CHILDREN + fork


def is_child(seat: int) -> bool:
    """Whether a seat is that of a child of a fork."""
    return 10 * _CHILDREN < seat < FIRST_GUEST

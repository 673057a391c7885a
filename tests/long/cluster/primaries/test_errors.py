"""Each code of a cluster, one at a time, in a process on one node."""

import pytest

from tests.long.cluster.galera.node import Node


def test_a_node_that_is_not_ready_gives_an_error_and_no_number(cluster, python):
    node = cluster.nodes[0]
    node.cut_off()
    node.wait_until_without_quorum()
    highest = python(
        cluster.nodes[1], "print(reserve('unready', node_tag='').range.high)"
    )
    python(
        node,
        """
hilo(RETRY_FOR=1.0)
with expect(ConcurrencyError, code := sys.argv[1], least=1.0):
    reserve("unready", node_tag="")
assert {retry[0] for retry in retries} == {code}, retries
""",
        node.unready,
    )
    node.heal()
    cluster.wait_until_whole()
    after = python(node, "print(reserve('unready', node_tag='').range.high)")
    assert int(after) == int(highest) + 1


def test_a_node_without_quorum_has_locked_nothing_even_if_it_says_so(cluster, python):
    """With wsrep_sync_wait it answers 1205, to Django's first query too."""
    node = cluster.nodes[0]
    if not isinstance(node, Node):
        pytest.skip("Galera's variable")
    node.cut_off()
    node.wait_until_without_quorum()
    python(
        node,
        """
options = connection.settings_dict["OPTIONS"]
options["init_command"] = "SET SESSION wsrep_sync_wait = 1"
hilo(LOCK_TIMEOUT=60.0, RETRY_FOR=1.0)
with expect(ConcurrencyError, "1047", least=1.0):
    reserve("unsynced", node_tag="")
assert set(retries) == {("1047", "statement")}, retries

""",
    )
    node.heal()
    cluster.wait_until_whole()


def test_a_locked_row_gives_an_error_and_the_connection_goes_on(
    cluster, python, no_eviction
):
    python(
        cluster.nodes[2],
        """
hilo(LOCK_TIMEOUT=1.0)
first = reserve("locked").range
stranger = another_connection()
hold_row(stranger, "locked/C")
with expect(ReservationTimeout, "1205", least=0.5):
    reserve("locked")
stranger.rollback()
second = reserve("locked").range
assert second.low == first.high + 1, (first, second)
assert retries == [], retries
""",
    )


def test_a_lock_on_another_node_makes_nobody_wait_but_loses(
    cluster, python, no_eviction
):
    other = cluster.nodes[1]
    python(
        cluster.nodes[0],
        """
reserve("far", node_tag="")
stranger = another_connection(port=sys.argv[1])
hold_row(stranger, "far/")
with stranger.cursor() as cursor:
    cursor.execute("UPDATE django_hilo_hilodocument SET max = 999 WHERE id = 'far/'")
reserved = reserve("far", node_tag="").range
assert (reserved.low, reserved.high) == (2, 2), reserved
with expect(Error, sys.argv[2]):
    stranger.commit()
stranger.rollback()
assert reserve("far", node_tag="").range.low == 3
""",
        str(other.port),
        " ".join(other.conflicts),
    )


def test_a_connection_that_is_killed_while_it_waits_is_replaced(
    cluster, python, no_eviction
):
    python(
        cluster.nodes[0],
        """
import threading
first = reserve("killed").range
holder, killer = another_connection(), another_connection()
hold_row(holder, "killed/A")
with holder.cursor() as cursor:
    cursor.execute("SELECT CONNECTION_ID()")
    held_by = cursor.fetchone()[0]

def kill():
    with killer.cursor() as cursor:
        def waits():
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE info LIKE %s "
                "AND id NOT IN (CONNECTION_ID(), %s)", ["%hilodocument%", held_by]
            )
            return cursor.fetchone()
        wait_until(waits)
        cursor.execute(f"KILL {waits()[0]}")
    holder.rollback()

thread = threading.Thread(target=kill)
thread.start()
second = reserve("killed").range
thread.join()
assert second.low == first.high + 1, (first, second)
assert retries[0] in {("2013", "statement"), ("2006", "statement")}, retries
""",
    )


def test_a_stopped_node_hangs_nobody_whatever_the_options_are(cluster, python):
    python(
        cluster.nodes[0],
        """
import os, signal, threading
from pathlib import Path
for name in "connect_timeout", "read_timeout", "write_timeout":
    del connection.settings_dict["OPTIONS"][name]
hilo(LOCK_TIMEOUT=2.0, RETRY_FOR=3.0)
reserve("frozen")
with connection.cursor() as cursor:
    cursor.execute("SELECT @@pid_file")
    pid = int(Path(cursor.fetchone()[0]).read_text())
os.kill(pid, signal.SIGSTOP)
too_late = threading.Timer(180, os.kill, [pid, signal.SIGCONT])
too_late.start()
try:
    with expect(ConcurrencyError, "2013"):
        reserve("frozen")
finally:
    os.kill(pid, signal.SIGCONT)
    too_late.cancel()
""",
    )
    cluster.wait_until_whole()

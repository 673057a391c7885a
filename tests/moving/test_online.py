"""hilo_move_online: keys move while a program goes on inserting and updating."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections, models, transaction

from django_hilo._allocation import pool
from django_hilo.exceptions import HiLoError
from django_hilo.models import HiLoDocument
from django_hilo.moving.online import phases
from django_hilo.moving.online.running import Patience, run
from django_hilo.moving.online.swapping import swap as swap_of
from tests.support.databases import CHOSEN
from tests.support.moving_shop import FILL, INTEGER, RELATIONS, move, shop_in
from tests.support.moving_stage import Stage, item, move_owner, owner
from tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(
    CHOSEN != "postgres", reason="The move without long locks is PostgreSQL's."
)
PHASES = ["prepare", "backfill", "indexes", "constraints", "swap", "clean"]
# Blocks of two kinds of rows: many batches for few rows.
HASTY = Patience(lock_timeout=0.1, tries=2, blocks=1, pause=0)
TABLES = ["moved_owner", "moved_item"]
MIGRATION = ("moved", "0002_hilo")


@pytest.fixture
def stage(transactional_db):
    pool.after_fork_in_child()
    stage = Stage()
    key = models.BigAutoField(primary_key=True)
    stage.migrate(owner(key, unique_together={("parent", "name")}), item())
    owners = stage.model("Owner").objects
    for n in range(1, 400):
        owners.create(name=f"o{n}", parent_id=n // 3 or None)
        stage.model("Item").objects.create(owner_id=n)
    yield stage
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'moved'")
    stage.drop()


def the_move(stage):
    operation = move_owner()
    before = stage.states[-1]
    after = before.clone()
    operation.state_forwards("moved", after)
    return operation.move("moved", connection, before, after, forwards=True), after


@contextmanager
def held(mode):
    """Hold a lock on the tables in another session, as a long transaction does."""
    other = connections.create_connection("default")
    other.settings_dict = connection.settings_dict
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {', '.join(TABLES)} IN {mode} MODE")
        yield
    finally:
        other.rollback()
        other.close()


def one(query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()


def filenodes():
    return one(
        "SELECT pg_relation_filenode('moved_owner'), pg_relation_filenode('moved_item')"
    )


def test_only_changes_of_the_catalogue_lock_readers_out(stage):
    """A reader's lock conflicts with ACCESS EXCLUSIVE, and with nothing else."""
    before = filenodes()
    the, _ = the_move(stage)
    for phase in PHASES[:4]:
        for work in getattr(phases, phase)(the):
            if "ACCESS EXCLUSIVE" in work.lock:
                with held("ACCESS SHARE"), pytest.raises(HiLoError, match="in 2 tries"):
                    run(work, connection, HASTY, str)
                run(work, connection, HASTY, str)
            else:
                with held("ACCESS SHARE"):
                    one("SELECT set_config('lock_timeout', '100ms', false)")
                    run(work, connection, HASTY, str)
                    one("SELECT set_config('lock_timeout', '0', false)")
    assert filenodes() == before  # nothing was rewritten

    (swap,) = swap_of(the, MIGRATION)
    with held("ACCESS SHARE"), pytest.raises(HiLoError, match="in 2 tries"):
        run(swap, connection, HASTY, str)
    assert stage.model("Owner").objects.get(pk=7).name == "o7"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(swap.statements[0])
        swap.act()
        scans = (
            "SELECT sum(seq_scan) FROM pg_stat_xact_user_tables "
            "WHERE relname LIKE 'moved%'"
        )
        known = one(scans)
        for statement in swap.statements[1:]:
            cursor.execute(statement)
        assert one(scans) == known  # no row was looked at
    assert filenodes() == before


def test_the_tables_after_the_swap(stage):
    def names():
        found = {}
        with connection.cursor() as cursor:
            for table in TABLES:
                all_of = connection.introspection.get_constraints(cursor, table)
                for name, about in all_of.items():
                    del about["definition"]
                    found[table, name] = about
        return found

    before = names()
    the, after = the_move(stage)
    for phase in PHASES[:4]:
        for _ in range(2):  # each may be repeated
            for work in getattr(phases, phase)(the):
                run(work, connection, HASTY, str)
    (swap,) = swap_of(the, MIGRATION)
    run(swap, connection, HASTY, str)
    stage.states.append(after)
    assert names() == before
    owners = stage.model("Owner").objects
    assert owners.get(pk="owners/7-A").parent_id == "owners/2-A"
    assert stage.model("Item").objects.get(owner="owners/7-A").owner.name == "o7"
    assert owners.create(name="new").pk == "owners/400-A"
    assert HiLoDocument.objects.get(pk="owners/A").floor == 399
    for work in phases.clean(the):
        run(work, connection, HASTY, str)
    assert one(
        "SELECT count(*) FROM pg_attribute WHERE attname LIKE 'hilo%' AND NOT "
        "attisdropped AND attrelid IN ('moved_owner'::regclass, 'moved_item'::regclass)"
    ) == (0,)
    assert one("SELECT count(*) FROM pg_proc WHERE proname LIKE 'hilo_move%'") == (0,)


def test_no_swap_before_all_phases(stage):
    the, _ = the_move(stage)
    for phase in PHASES[:4]:
        if phase != "prepare":
            (swap,) = swap_of(the, MIGRATION)
            with pytest.raises(HiLoError, match="Not ready for the swap: .* prepare"):
                run(swap, connection, HASTY, str)
        for work in getattr(phases, phase)(the):
            if phase != "constraints" or "moved_item" not in work.what:
                run(work, connection, HASTY, str)
    (swap,) = swap_of(the, MIGRATION)
    with pytest.raises(HiLoError, match="Not ready for the swap: hilo_same_"):
        run(swap, connection, HASTY, str)
    for work in phases.abandon(the):
        run(work, connection, HASTY, str)
    stage.migrate(move_owner())
    assert stage.model("Owner").objects.count() == 399


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (
            "ALTER TABLE moved_item ADD odd text "
            "GENERATED ALWAYS AS (owner_id::text || '!') STORED",
            "column odd",
        ),
        ("CREATE POLICY odd ON moved_item USING (owner_id = 5)", "the policy odd"),
        (
            "CREATE TRIGGER odd BEFORE UPDATE OF owner_id ON moved_item "
            "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "the trigger odd",
        ),
        ("CREATE VIEW moved_odd AS SELECT owner_id FROM moved_item", "moved_odd"),
    ],
)
def test_what_would_stay_with_the_old_column(stage, made, named):
    the, _ = the_move(stage)
    for work in phases.prepare(the):
        run(work, connection, HASTY, str)
    with connection.cursor() as cursor:
        cursor.execute(made)
    with pytest.raises(HiLoError, match=f"{named}.* reads .*owner_id, and would stay"):
        swap_of(the, MIGRATION)
    # The way out is open, and after the swap it may be made again before "clean".
    assert phases.clean(the)
    for work in phases.abandon(the):
        run(work, connection, HASTY, str)
    with connection.cursor() as cursor:
        cursor.execute("DROP VIEW IF EXISTS moved_odd")


def test_comments_and_nulls_that_are_not_distinct(stage):
    with connection.cursor() as cursor:
        cursor.execute("COMMENT ON COLUMN moved_owner.parent_id IS 'it''s 5 %'")
        is_known = connection.features.supports_nulls_distinct_unique_constraints
        distinct = "NULLS NOT DISTINCT" if is_known else ""
        cursor.execute(
            f"CREATE UNIQUE INDEX odd ON moved_owner (parent_id, name) {distinct}"
        )
    shown = (
        "SELECT col_description(attrelid, attnum), pg_get_indexdef('odd'::regclass) "
        "FROM pg_attribute WHERE attrelid = 'moved_owner'::regclass "
        "AND attname = 'parent_id'"
    )
    before = one(shown)
    the, after = the_move(stage)
    for phase in PHASES[:4]:
        for work in getattr(phases, phase)(the):
            run(work, connection, HASTY, str)
    (swap,) = swap_of(the, MIGRATION)
    run(swap, connection, HASTY, str)
    stage.states.append(after)
    assert one(shown) == before


def test_generic_keys_stay_part_of_a_move(stage):
    """Though the last row is deleted meanwhile, and nothing is lost of its column."""
    type = ContentType.objects.create(app_label="moved", model="owner")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX odd ON django_admin_log (object_id text_pattern_ops)"
        )
    shown = "SELECT pg_get_indexdef('odd'::regclass)"
    before = one(shown)
    LogEntry.objects.create(
        user=User.objects.create(username="someone"),
        content_type=type,
        object_id="7",
        action_flag=ADDITION,
    )
    try:
        the, _ = the_move(stage)
        for work in phases.prepare(the):
            run(work, connection, HASTY, str)
        LogEntry.objects.all().delete()
        the, _ = the_move(stage)
        for phase in [*PHASES[:4]]:
            for work in getattr(phases, phase)(the):
                run(work, connection, HASTY, str)
        with pytest.raises(HiLoError, match="hilo_move_online has begun .* abandon"):
            stage.migrate(move_owner())
        (swap,) = swap_of(the, MIGRATION)
        run(swap, connection, HASTY, str)
        assert one(shown) == before
        the, after = the_move(stage)
        for work in phases.clean(the):
            run(work, connection, HASTY, str)
        stage.states.append(after)
        assert one("SELECT count(*) FROM pg_trigger WHERE tgname = 'zz_hilo_move'") == (
            0,
        )
        assert one(
            "SELECT count(*) FROM pg_attribute WHERE attname LIKE 'hilo_%%' "
            "AND attrelid = 'django_admin_log'::regclass AND NOT attisdropped"
        ) == (0,)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS odd")


# Inserts and updates on old programs' models, and notes what is committed.
WRITER = """
    import random, sys, time
    from django.db import Error, connection, transaction
    from shop.models import *
    seed, log = sys.argv[1], open(sys.argv[2], "a", buffering=1)
    random.seed(seed)
    known = list(Customer.objects.values_list("pk", "name"))
    print("writes", flush=True)
    number = 0
    while True:
        number += 1
        name = f"w{seed}-{number}"
        parent = random.choice(known)
        try:
            with transaction.atomic():
                made = Customer.objects.create(name=name, parent_id=parent[0])
                passport = Passport.objects.create(customer=made, number=name)
                Visa.objects.create(passport=passport, old_id=parent[0])
                Tag.objects.create(text=name, target=made)
                made.friends.add(parent[0])
            with transaction.atomic():
                new_parent = random.choice(known)
                Customer.objects.filter(pk=made.pk).update(parent=new_parent[0])
        except (Error, TypeError, ValueError) as error:  # not even one to try again
            print(f"stopped: {error}", flush=True)
            break
        known.append((made.pk, name))
        time.sleep(0.01)  # so that the phases have a share of a small machine
        print(name, made.pk, parent[1], new_parent[1], file=log)
"""
WRITTEN = """
    import json
    from shop.models import *
    tags = {tag.text: tag.object_id for tag in Tag.objects.all()}
    print(json.dumps({
        c.name: [
            c.pk, c.parent.name, c.friends.get().name, c.passport.number,
            c.passport.visa_set.get().old.name, tags[c.name],
        ]
        for c in Customer.objects.filter(name__startswith="w")
    }))
"""


def test_beside_writers(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), shop_in(tmp_path, INTEGER) as project:
        project.run(FILL, "12")
        before = json.loads(project.run(RELATIONS))
        keys = before.pop("keys")
        logs = [tmp_path / f"{seed}.log" for seed in (1, 2)]
        writers = [
            project.start(WRITER, str(seed), str(log))
            for seed, log in enumerate(logs, 1)
        ]
        try:
            assert [each.stdout.readline() for each in writers] == ["writes\n"] * 2
            move(project)
            for phase in PHASES[:5]:
                lines = [written(log) for log in logs]
                # Both go on beside, and between, the phases.
                wait_until(lambda: all(map(gt, map(written, logs), lines)))  # noqa: B023
                project.manage(
                    *("hilo_move_online", "shop", "0002", phase, "--blocks=1"),
                    "--tries=1000",
                )
            ends = [each.communicate(timeout=PATIENCE) for each in writers]
        finally:
            for each in writers:
                each.kill()
                each.wait()
        # By keys of another type after the swap: none was the victim of a deadlock.
        assert all(output.startswith("stopped: ") for output, _ in ends), ends
        assert not any("deadlock" in output or "cancel" in output for output, _ in ends)
        found = json.loads(project.run(WRITTEN))
        noted = [line.split() for log in logs for line in log.read_text().splitlines()]
        assert len(noted) > 10
        for name, key, friend, parent in noted:
            id = f"customers/{key}-A"
            assert found[name] == [id, parent, friend, name, friend, id]
        # A writer that the swap stopped may have left its last row, without a note.
        assert len(found) - len(noted) in range(3)

        after = json.loads(project.run(RELATIONS))
        new_keys = after.pop("keys")
        assert {name: new_keys[name] for name in keys} == {
            name: f"customers/{key}-A" for name, key in keys.items()
        }
        for kind in ("companies", "members", "guests", "log"):
            assert after[kind] == before[kind]
        project.manage("hilo_move_online", "shop", "0002", "clean")
        assert "No migrations to apply" in project.manage("migrate")
        assert "No changes" in project.manage("makemigrations", "--check")
        made = project.run(
            "from shop.models import *; print(Customer.objects.create().pk)"
        )
        assert int(made.split("/")[1][:-2]) > max(int(key) for _, key, *_ in noted)
        # The way back is the migration's own, which needs no old column.
        project.manage("migrate", "shop", "0001")


def written(log) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def gt(one, other) -> bool:
    return one > other

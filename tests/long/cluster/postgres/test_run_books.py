"""The commands of docs/how-to/postgresql.md, as they stand there."""

import pytest

from tests.long.cluster.evidence import collect
from tests.long.cluster.postgres.pair import Shared
from tests.long.cluster.postgres.process import django
from tests.long.cluster.postgres.replicated import DATABASE
from tests.long.cluster.postgres.shop import Shop, dsn, scripts

WORKERS = 4
ITEM = "numbers.Item"
SAVE = """
for number in range(%d):
    order = Order.objects.create(name="%s")
    line = OrderLine.objects.create(order=order, name="%s")
    print(order.id, line.id)
"""


class TestTwoSites:
    @pytest.fixture
    def shops(self, pair, tmp_path):
        """The shop on both sites, as set up by the page."""
        with pair.database("shop", template="template0") as shared:
            shops = {
                tag: Shop(tmp_path / tag, [site], tag)
                for tag, site in zip("AB", pair.sites, strict=True)
            }
            for shop in shops.values():
                shop.migrate()
            [(_, script)] = scripts("Set it up")
            shops["A"].shell(script, **sites(pair))
            shared.subscriptions = {pair.a: "from_b", pair.b: "from_a"}
            yield shops, shared

    def test_get_all_rows(self, shops, pair):
        shops, shared = shops
        a, b = pair.sites
        for tag, shop in shops.items():
            shop.print(SAVE % (20, f"of {tag}", f"of {tag}"))
        a.wait_for(lambda: names(shared, a) == names(shared, b), "like the other site")
        assert len(names(shared, a)) == 80
        b.wait_for(lambda: shared.counters(a) == shared.counters(b), "equal")
        assert not any(map(shared.troubles, pair.sites))

    def test_that_had_one_tag(self, shops, pair):
        """By the four steps of the page."""
        shops, shared = shops
        a, b = pair.sites
        shops["B"].set_tag("A")
        early = shops["A"].print(SAVE % (2, "early", "early"))
        b.wait_for(lambda: len(names(shared, b)) == 2 * len(early), "up to date")
        arrived = shops["B"].print(SAVE % (2, "of B", "of B"))
        a.wait_for(lambda: len(names(shared, a)) == 4 * len(arrived), "up to date")
        shared.cut()
        for tag, shop in shops.items():
            shop.print(SAVE % (20, f"of {tag}", f"of {tag}"))
        written = {site: names(shared, site) for site in pair.sites}
        assert len(written[a].keys() & written[b].keys()) > 10
        shared.heal()
        for site in pair.sites:
            site.wait_for(lambda site=site: shared.troubles(site), "in trouble")

        for site in pair.sites:
            shared(site, f"DROP SUBSCRIPTION {shared.subscriptions[site]}")
        for site, origin in (a, "<> 0"), (b, "= 0"):
            rename = RENAME.replace("{of_b}", origin)
            shops["B"].shell(
                f"psql -v ON_ERROR_STOP=1 '{dsn(site)}' <<'SQL'\n{rename}SQL"
            )
        shared(b, "DELETE FROM django_hilo_hilodocument WHERE node_tag = 'A'")
        for table in "shop_order", "shop_orderline":
            for site, other in (a, b), (b, a):
                copy(shared, table, site, other)
        _, *create = scripts("Set it up")[0][1].splitlines()
        shops["A"].shell("\n".join(create), **sites(pair))
        shops["B"].set_tag("B")
        for shop in shops.values():
            shop.manage("hilo_raise_max")

        own = {key: name for key, name in written[b].items() if name == "of B"}
        renamed = {key.removesuffix("-A") + "-B": name for key, name in own.items()}
        others = {key: name for key, name in written[a].items() if name != "of B"}
        assert names(shared, a) == names(shared, b) == {**others, **renamed}
        astray = "SELECT FROM shop_orderline l JOIN shop_order o ON o.id = order_id"
        query = f"SELECT count(*) AS n FROM ({astray} WHERE l.name <> o.name) x"
        for site in pair.sites:
            assert shared(site, query) == [{"n": 0}]
        before = len(names(shared, a))
        for shop in shops.values():
            shop.print(SAVE % (20, "late", "late"))
        a.wait_for(lambda: names(shared, a) == names(shared, b), "like the other site")
        assert len(names(shared, a)) == before + 80
        assert all(map(shared.is_receiving, pair.sites))


RENAME = r"""
BEGIN;
CREATE TEMP TABLE own ON COMMIT DROP AS
    SELECT id FROM (
        SELECT id, xmin FROM shop_order UNION ALL SELECT id, xmin FROM shop_orderline
    ) AS rows
    WHERE id LIKE '%-A' AND (pg_xact_commit_timestamp_origin(xmin)).roident {of_b};
UPDATE shop_orderline SET order_id = regexp_replace(order_id, '-A$', '-B')
    WHERE order_id IN (SELECT id FROM own);
UPDATE shop_orderline SET id = regexp_replace(id, '-A$', '-B')
    WHERE id IN (SELECT id FROM own);
UPDATE shop_order SET id = regexp_replace(id, '-A$', '-B')
    WHERE id IN (SELECT id FROM own);
COMMIT;
"""


def copy(shared: Shared, table: str, source, target) -> None:
    """Insert the rows of one site that the other lacks."""
    there = {row["id"] for row in shared(target, f"SELECT id FROM {table}")}
    for row in shared(source, f"SELECT * FROM {table}"):
        if row["id"] not in there:
            values = ", ".join(f"'{value}'" for value in row.values())
            shared(target, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})")


def names(shared: Shared, site) -> dict[str, str]:
    """Return the names of a site's orders and lines by their ids."""
    tables = ("shop_order", "shop_orderline")
    rows = [r for t in tables for r in shared(site, f"SELECT id, name FROM {t}")]
    return {row["id"]: row["name"] for row in rows}


def sites(pair) -> dict[str, str]:
    return {"SITE_A": dsn(pair.a), "SITE_B": dsn(pair.b)}


class TestFailover:
    def follow(self, servers, shop, title: str) -> None:
        """Run the commands of a section as one script: variables stay set."""
        servers_named = {
            "PRIMARY": dsn(servers.primary, DATABASE),
            "STANDBY": dsn(servers.standby, DATABASE),
        }
        script = "\n".join(script for _, script in scripts(title))
        print(shop.shell(script, **servers_named))

    @pytest.fixture
    def manage(self, servers, tmp_path):
        """A folder with a manage.py for the tables that the workers write."""
        folder = tmp_path / "project"
        variables = {
            name: value
            for name, value in servers.environment().items()
            if name in ("HILO_CLUSTER", "DJANGO_SETTINGS_MODULE")
        }
        return Shop(folder, [servers.primary, servers.standby], "A", **variables)

    def test_without_synchronous_commit(self, servers, load, process, manage, capsys):
        first = load.start(WORKERS, servers.environment())
        survivor = process(servers.environment())
        items = survivor.take(5, ITEM)
        load.wait_for_ids()
        servers.lag()
        load.wait_for_ids(count=100)
        items += survivor.take(50, ITEM)
        servers.primary.kill()
        self.follow(servers, manage, "Run-book: failover without SYNCHRONOUS_COMMIT")
        check = ("check", "--deploy", "--database=default")
        assert "django_hilo" not in django(servers.environment(), *check)
        new = load.start(2, servers.environment())
        load.wait_for_ids()
        load.end()
        items += process(servers.environment()).take(50, ITEM)
        assert len(set(items)) == len(items)
        evidence = collect(load.folder)
        with capsys.disabled():
            print(f"\nrun-book: {evidence}")
        assert evidence.seats() == {*first, *new}
        assert evidence.rows["stood"] - servers.orders(servers.standby), "rows are lost"
        evidence.assert_nothing_twice()

    def test_with_synchronous_commit(self, servers, process, manage):
        self.follow(servers, manage, "SYNCHRONOUS_COMMIT")
        servers.primary.wait_for(
            lambda: servers.primary.execute(
                "SELECT 1 AS n FROM pg_stat_replication WHERE sync_state = 'quorum'"
            ),
            "replicating synchronously",
        )
        survivor = process(servers.environment("remote_apply"))
        before = survivor.take(20)
        servers.primary.kill()
        title = "Run-book: failover with SYNCHRONOUS_COMMIT"
        self.follow(servers, manage, title)
        servers.add_standby(servers.third, servers.standby)
        survivor.try_to_take(1)
        after = survivor.take(20)
        new = process(servers.environment("remote_apply")).take(20)
        assert len({*before, *after, *new}) == 60

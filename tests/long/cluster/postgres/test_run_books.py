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
        """The shop on both sites, of one node tag, as set up by the page."""
        with pair.database("shop", template="template0") as shared:
            shops = {
                tag: Shop(tmp_path / tag, [site], "A")
                for tag, site in zip("AB", pair.sites, strict=True)
            }
            for shop in shops.values():
                shop.migrate()
            [(_, script)] = scripts("Set it up")
            shops["A"].shell(script, **sites(pair))
            shared.subscriptions = {pair.a: "from_b", pair.b: "from_a"}
            yield shops, shared

    @pytest.mark.parametrize("together", [2, 0])
    def test_get_a_tag_each_and_keep_all_rows(self, shops, pair, together):
        """Whether they knew of each other's counters before, or not."""
        shops, shared = shops
        a, b = pair.sites
        first = shops["A"].print(SAVE % (together, "early", "early"))
        b.wait_for(lambda: len(names(shared, b)) == 2 * len(first), "up to date")
        shared.cut()
        given = {
            tag: shop.print(SAVE % (20, f"of {tag}", f"of {tag}"))
            for tag, shop in shops.items()
        }
        assert len(set(given["A"]) & set(given["B"])) > 10
        written = {site: names(shared, site) for site in pair.sites}
        shared.heal()
        for site in pair.sites:
            site.wait_for(lambda site=site: shared.troubles(site), "in trouble")

        for site, script in scripts("Run-book: give one of them its own tag"):
            if "manage.py" in script:
                shops["B"].set_tag("B")
            shops[site].shell(script, **sites(pair))

        a.wait_for(lambda: names(shared, a) == names(shared, b), "like the other site")
        b.wait_for(lambda: shared.counters(a) == shared.counters(b), "equal")
        merged = names(shared, a)
        own = {key: name for key, name in written[b].items() if name == "of B"}
        renamed = {key.removesuffix("-A") + "-B": name for key, name in own.items()}
        assert merged == {**written[a], **renamed}
        for site in pair.sites:
            assert shared.is_receiving(site)
            astray = "SELECT FROM shop_orderline l JOIN shop_order o ON o.id = order_id"
            query = f"SELECT count(*) AS n FROM ({astray} WHERE l.name <> o.name) x"
            assert shared(site, query) == [{"n": 0}]
            query = "SELECT count(*) AS n FROM shop_orderline"
            assert shared(site, query) == [{"n": 40 + together}]
        for shop in shops.values():
            shop.print(SAVE % (20, "late", "late"))
        a.wait_for(lambda: names(shared, a) == names(shared, b), "like the other site")
        assert len(names(shared, a)) == len(merged) + 80


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

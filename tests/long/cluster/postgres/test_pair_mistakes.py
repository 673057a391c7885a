"""What goes wrong between two sites, and who tells."""

from __future__ import annotations

import pytest

from tests.long.cluster.postgres.load import environment_on
from tests.long.cluster.postgres.process import django

ORDERS = "TABLE records_order, django_hilo_hilodocument"


@pytest.fixture
def check(pair):
    """Run the deploy checks on a site; return what they say."""

    def run(shared, site, tag="A", *, expect=0) -> str:
        environment = environment_on([site], shared.name, tag)
        return django(
            environment, "check", "--deploy", "--database=default", expect=expect
        )

    return run


class TestIdsWithoutANodeTag:
    def test_are_refused_by_a_deploy_check(self, pair, check):
        with pair.database("refused") as shared:
            shared.replicate("ALL TABLES")
            for site, tag in zip(pair.sites, "AB", strict=True):
                said = check(shared, site, tag, expect=1)
                [line] = [line for line in said.splitlines() if "E027" in line]
                for label in ("numbers.Item", "records.Letter", "records.Registered"):
                    assert label in line
                assert "records.Order" not in line

    def test_may_be_where_one_site_alone_has_the_rows(self, pair, check):
        with pair.database("allowed") as shared:
            shared.replicate(ORDERS)
            for site, tag in zip(pair.sites, "AB", strict=True):
                assert "django_hilo" not in check(shared, site, tag)

    @pytest.mark.parametrize("label", ["numbers.Item", "records.Letter"])
    def test_would_be_given_twice_and_stop_replication(self, pair, process, label):
        with pair.database("stopped") as shared:
            shared.replicate("ALL TABLES")
            shared.cut()
            given = [
                process(environment_on([site], shared.name, tag)).save(5, label)
                for site, tag in zip(pair.sites, "AB", strict=True)
            ]
            assert given[0] == given[1]
            shared.heal()
            for site in pair.sites:
                site.wait_for(lambda site=site: shared.troubles(site), "in trouble")
                assert "confl_insert_exists" in shared.troubles(site)


class TestOneNodeTagOnTwoSites:
    def test_gives_ids_twice_and_is_told(self, pair, process, check):
        with pair.database("same") as shared:
            shared.replicate(ORDERS)
            first, second = (
                process(environment_on([site], shared.name, "A")) for site in pair.sites
            )
            first.save(1)
            pair.b.wait_for(lambda: shared.counters(pair.b), "up to date")
            assert "django_hilo.W026" not in check(shared, pair.a)
            assert "django_hilo.W026" in check(shared, pair.b)
            shared.cut()
            theirs = second.save(40)
            assert_told(pair, second.warned)
            ours = first.save(40)
            assert len(set(ours) & set(theirs)) > 20
            assert first.warned == [], "it heard nothing yet"
            shared.heal()
            for site in pair.sites:
                site.wait_for(lambda site=site: shared.troubles(site), "in trouble")
            said = check(shared, pair.a)
            assert "django_hilo.W026" in said
            assert "orders/A" in said
            assert "two sites have the node tag 'A'" in said
            first.save(10)
            assert_told(pair, first.warned)

    def test_is_told_by_postgresql_alone_where_both_made_the_counter_while_apart(
        self, pair, process, check
    ):
        with pair.database("apart") as shared:
            shared.replicate(ORDERS)
            shared.cut()
            writers = [
                process(environment_on([site], shared.name, "A")) for site in pair.sites
            ]
            ours, theirs = (writer.save(30) for writer in writers)
            assert ours == theirs
            shared.heal()
            for site, writer in zip(pair.sites, writers, strict=True):
                site.wait_for(lambda site=site: shared.troubles(site), "in trouble")
                assert "django_hilo_hilodocument" in site.last_lines()
                writer.save(30)
                assert writer.warned == []
                assert "django_hilo.W026" not in check(shared, site)

    def test_is_not_told_where_the_counters_are_not_replicated(
        self, pair, process, check
    ):
        with pair.database("silent") as shared:
            shared.replicate("TABLE records_order")
            writers = [
                process(environment_on([site], shared.name, "A")) for site in pair.sites
            ]
            writers[0].save(30)
            shared.wait_until_equal()
            told = writers[1].try_to_save(30)
            assert {fate for _, fate in told} == {"refused"}
            assert writers[1].warned == []
            assert "django_hilo.W026" not in check(shared, pair.b)


def assert_told(pair, warned) -> None:
    """Both servers are named, once."""
    [warning] = warned
    assert "Otherwise two sites have the node tag 'A'" in warning
    for site in pair.sites:
        assert system_identifier(site) in warning


def system_identifier(site) -> str:
    [row] = site.execute("SELECT system_identifier FROM pg_control_system()")
    return str(row["system_identifier"])

"""What goes wrong between two sites."""

import pytest

from tests.long.cluster.postgres.process import django
from tests.long.cluster.postgres.server import environment_on

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


def test_one_node_tag_on_two_sites_gives_ids_twice(pair, process):
    with pair.database("same") as shared:
        shared.replicate(ORDERS)
        first, second = (
            process(environment_on([site], shared.name, "A")) for site in pair.sites
        )
        first.save(1)
        pair.b.wait_for(lambda: shared.counters(pair.b), "up to date")
        shared.cut()
        ours, theirs = first.save(200), second.save(40)
        assert len(set(ours) & set(theirs)) > 20
        assert first.warned == []
        shared.heal()
        for site in pair.sites:
            site.wait_for(lambda site=site: shared.troubles(site), "in trouble")
        first.save(100)
        assert any("fell back" in warning for warning in first.warned)

"""What docs/how-to/sharding.md shows of buckets, run as it stands there."""

import doctest
import re

from tests.support.commands import PROJECT

TEXT = (PROJECT / "docs/how-to/sharding.md").read_text()


def test_buckets_and_shard_numbers():
    code = "".join(re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(code, {}, "sharding.md", None, 0)
    assert doctest.DocTestRunner().run(parsed) == (0, 3)

"""schemathesis, which reads the schema, against the REST endpoints under gunicorn."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command

from django_hilo.counters import reserve
from django_hilo.models import HiLoDocument
from tests.conftest import child_environment
from tests.support.patience import LONGEST
from tests.support.servers import gunicorn

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

EXAMPLES = os.environ.get("HILO_TEST_EXAMPLES", "20")


@pytest.fixture
def address() -> Iterator[str]:
    """Serve the project, with the tests' databases, until the test ends."""
    environment = {
        **child_environment(),
        "DJANGO_SETTINGS_MODULE": "tests.long.interop.settings",
    }
    with gunicorn("tests.long.interop.wsgi", environment) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("collections", ["any", "known"])
def test_no_server_error_and_no_violation_of_the_schema(
    address: str, tmp_path: Path, collections: str
) -> None:
    User.objects.create_superuser("boss", password="secret")
    reserve("orders", 32)
    file = tmp_path / "schema.yml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    if collections == "known":  # few that are generated from a pattern are
        schema = yaml.safe_load(file.read_text())
        for operations in schema["paths"].values():
            for operation in operations.values():
                for parameter in operation["parameters"]:
                    if (parameter["name"], parameter["in"]) == ("collection", "path"):
                        parameter["schema"]["enum"] = ["orders", "OrderLines"]
        file.write_text(yaml.safe_dump(schema))
    done = subprocess.run(
        [Path(sys.executable).parent / "schemathesis", "run", file,
         f"--url={address}", "--auth=boss:secret", "--checks=all",
         # Which names are inside their grammars is not in the schema.
         "--exclude-checks=positive_data_acceptance",
         f"--max-examples={EXAMPLES}", "--seed=1", "--generation-database=none"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 selected / 9 total" in done.stdout
    assert HiLoDocument.objects.get(pk="orders/A").max > 32, "nothing was reserved"

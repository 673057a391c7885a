"""docs/how-to/integer-keys.md: how keys start at 1000."""

from tests.support.pages import blocks, fences, page
from tests.support.projects import project_in

PAGE = page("how-to/integer-keys.md")


def test_the_call(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), project_in(tmp_path) as shop:
        shop.set(INSTALLED_APPS=["django_hilo", "shop"])
        models = fences(PAGE)[0].text
        shop.write("shop/models.py", f"from django.db import models\n{models}")
        shop.manage("makemigrations", "shop")
        [migration] = blocks(PAGE, "Start at 1000", "python")
        shop.write("shop/migrations/0002_start_at_1000.py", migration)
        shop.manage("migrate")
        code = "from shop.models import Order; print(Order.objects.create().pk)"
        assert shop.run(code) == "1000"

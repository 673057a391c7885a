import os

from django.core.wsgi import get_wsgi_application

from tests.long.hosting.warm import warm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.long.hosting.settings")
application = get_wsgi_application()
warm()

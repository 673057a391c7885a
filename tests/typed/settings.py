INSTALLED_APPS = ["django_hilo", "tests.typed"]
SECRET_KEY = "type checkers only"

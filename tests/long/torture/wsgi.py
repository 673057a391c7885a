"""The site that REST's and RavenDB's clients of a run draw from."""

import atexit

from django.core.wsgi import get_wsgi_application

from tests.long.torture import notes

# Before django_hilo registers its own: it is called after that.
atexit.register(notes.note_end, "normally")
application = get_wsgi_application()

from tests.long.torture import listening, settings  # noqa: E402 - needs the apps

notes.open_for(settings.FOLDER, notes.WEB_SEAT)
notes.note("web")
listening.listen()
listening.break_if_asked()

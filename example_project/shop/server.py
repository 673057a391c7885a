from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class LocalServer:
    """The example on a free port of 127.0.0.1, with its static files."""

    def __init__(self, *, log: bool) -> None:
        handler = WSGIRequestHandler if log else _SilentHandler
        self._server = ThreadedWSGIServer(("127.0.0.1", 0), handler)
        self._server.set_app(StaticFilesHandler(WSGIHandler()))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def serve_until_interrupted(self) -> None:
        """Answer requests until Ctrl-C."""
        try:
            self._server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            self._server.server_close()

    @contextmanager
    def in_background(self) -> Iterator[str]:
        """Answer requests while the block runs, which gets the URL."""
        thread = Thread(target=self._server.serve_forever, args=[0.05], daemon=True)
        thread.start()
        try:
            yield self.url
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

"""The address by which programs reach the primary, as a router would give it."""

import socket
import threading
from contextlib import suppress

from benchmarks.proxy import Proxy
from tests.support.own_server import Server


class Route(Proxy):
    """Leads connections to the server that it was last set to."""

    def __init__(self, server: Server) -> None:
        super().__init__("127.0.0.1", server.port, 0)
        self._clients: list[socket.socket] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._clients.append(client)
        super()._connect(client)

    def lead_to(self, server: Server) -> None:
        """Lead the next connections there, and end those that there are."""
        self._server = ("127.0.0.1", server.port)
        ended, self._clients = self._clients, []
        for client in ended:
            with suppress(OSError):  # it has ended
                client.shutdown(socket.SHUT_RDWR)

"""A TCP proxy that keeps everything back for a while, as a network does.

    python -m benchmarks.proxy HOST PORT SECONDS

prints the port it listens on, and ends with its standard input. ``SECONDS`` is what a
round trip takes longer.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

LOCAL = "127.0.0.1"
AT_ONCE = 1 << 16


class Proxy:
    """Passes on what clients and a server say to each other, later."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._server = (host, port)
        # Each way.
        self._delay = seconds / 2
        self._listening = socket.create_server((LOCAL, 0))
        self.port = self._listening.getsockname()[1]

    def serve(self) -> None:
        """Accept clients until `close`."""
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                _start(self._connect, client)

    def close(self) -> None:
        """Accept no more clients."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ways = [Way(client, server, self._delay), Way(server, client, self._delay)]
        for way in ways:
            way.ended.wait()
        client.close()
        server.close()


class Way:
    """One direction of a connection: all bytes in their order, each as late."""

    def __init__(
        self, source: socket.socket, sink: socket.socket, delay: float
    ) -> None:
        self._source, self._sink, self._delay = source, sink, delay
        self._on_their_way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        self.ended = threading.Event()
        _start(self._receive)
        _start(self._send)

    def _receive(self) -> None:
        data = b"-"
        while data:
            try:
                data = self._source.recv(AT_ONCE)
            except OSError:
                data = b""
            self._on_their_way.put((time.monotonic() + self._delay, data))

    def _send(self) -> None:
        with suppress(OSError):
            while True:
                due, data = self._on_their_way.get()
                time.sleep(max(due - time.monotonic(), 0))
                if not data:
                    self._sink.shutdown(socket.SHUT_WR)
                    break
                self._sink.sendall(data)
        self.ended.set()


@contextmanager
def in_process(host: str, port: int, seconds: float) -> Iterator[int]:
    """Run a proxy in a process of its own; give its port."""
    command = [sys.executable, "-m", "benchmarks.proxy"]
    process = subprocess.Popen(
        [*command, host, str(port), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def _start(target: object, *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def main(host: str, port: str, seconds: str) -> None:
    """Serve until the standard input ends, with the process that holds it."""
    proxy = Proxy(host, int(port), float(seconds))
    print(proxy.port, flush=True)
    _start(proxy.serve)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A configuration of gunicorn: patched before --preload imports anything."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

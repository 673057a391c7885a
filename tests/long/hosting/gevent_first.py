"""A configuration of gunicorn: patched before --preload imports anything."""

from gevent import monkey

monkey.patch_all()

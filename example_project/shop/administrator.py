from __future__ import annotations

import secrets
from hashlib import sha256

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.signals import setting_changed

USERNAME = "admin"


def renew_administrator() -> str:
    """Make the superuser, or find it, and give it a new random password."""
    password = secrets.token_urlsafe(12)
    user, _ = get_user_model()._default_manager.get_or_create(username=USERNAME)
    user.is_active = user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()
    return password


def new_token() -> str:
    """Let RavenDB's clients in with a new token, as long as this process runs."""
    token = secrets.token_urlsafe(32)
    digest = sha256(token.encode()).hexdigest()
    settings.HILO = {**settings.HILO, "RAVENDB_TOKENS": [digest]}
    # As override_settings() does: settings are loaded once.
    changed = {"setting": "HILO", "value": settings.HILO, "enter": True}
    setting_changed.send(sender=None, **changed)
    return token

"""A headless Chromium on pages of a live server.

A message on the browser's console, such as a violation of the Content-Security-Policy,
an error of a script, or an answer over 399, fails the test.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    expect,
    sync_playwright,
)

from tests.support.patience import PATIENCE
from tests.support.programs import require

expect.set_options(timeout=PATIENCE * 1000)

# Playwright's loop runs in this thread, where the ORM suspects async code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
# The sandbox needs rights that root in a container lacks; the rest keeps to this host.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTH, HEIGHT = 1280, 900


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        require("There is no chromium; CHROMIUM may name one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE * 1000
        )
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complains of; a test that provokes it clears the list."""
    return []


@pytest.fixture
def open_as(
    browser: Browser, live_server, complaints, tmp_path
) -> Iterator[Callable[..., Page]]:
    """Open a page of the live server for a user, logged in."""
    contexts = []

    def note(message: ConsoleMessage) -> None:
        # Chromium asks for an icon that pages without a link to one do not have.
        is_icon = message.location["url"].endswith("/favicon.ico")
        if message.type in ("error", "warning") and not is_icon:
            complaints.append(f"{message.type}: {message.text}")

    def open_page(user: User, path: str = "/admin/", scheme: str = "light") -> Page:
        client = Client()
        client.force_login(user)
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme=scheme,
        )
        contexts.append(context)
        cookie = client.cookies["sessionid"]
        context.add_cookies(
            [{"name": "sessionid", "value": cookie.value, "url": live_server.url}]
        )
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        for number, page in enumerate(context.pages):
            with suppress(
                Error
            ):  # for who looks into a failure; a popup may be closing
                page.screenshot(path=tmp_path / f"at-the-end-{number}.png")
        context.close()
    assert not complaints


@pytest.fixture
def superuser(transactional_db) -> User:
    return User.objects.create_superuser("admin")


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[Page, str], None]:
    """Keep a screenshot, in the folder that HILO_SCREENSHOTS names."""
    folder = Path(os.environ.get("HILO_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=True)

    return take

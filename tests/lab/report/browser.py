"""A page in a browser without a screen, which records what goes wrong and what is asked of the network."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium():
    """The browser's path; without it, or without playwright, the test is skipped."""
    pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright (pip install playwright)")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"the browser tests need one of {', '.join(NAMES)} on the path")
    return found


@contextmanager
def browser():
    """Chromium, started once for many pages."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, headless=True, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started, path, *, width=1280, height=900, scheme="light", motion="no-preference"):
    """The page, with `errors` (of the console, of scripts) and `requests` (all but the page itself) as lists."""
    context = started.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion=motion, offline=True
    )
    page = context.new_page()
    errors, requests, address = [], [], Path(path).absolute().as_uri()

    def seen(request):
        if request.url.split("#")[0] != address and not request.url.startswith(("data:", "blob:")):
            requests.append(request.url)

    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", seen)
    page.on("dialog", lambda dialog: (errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.goto(address)
    page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    page.errors, page.requests = errors, requests
    try:
        yield page
    finally:
        context.close()


def drawn(page, figure):
    """The figure, scrolled to and drawn, as a locator."""
    found = page.locator(figure).first
    found.scroll_into_view_if_needed()
    page.wait_for_function(
        "q => document.querySelector(q).dataset.drawn !== undefined && document.querySelector(q + ' .main-svg')",
        arg=figure,
    )
    return found

"""The app served and a Chromium launched, each once a session and only for the tests that ask for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres import NO_POSTGRES, postgres_programs, served_postgres
from serving import Pages, chromium_path, launched_chromium, no_chromium, served_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from stage_page import Stage

    from dpsim.store import Store

DESKTOP = {"width": 1280, "height": 900}
FORGET = "try { localStorage.removeItem('dpsim.key'); } catch {}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay in one process, and so do all live runs: they would only queue for the machine.
    What takes long comes first, so that no process is left alone with it at the end."""
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("live" if name.startswith("test_live") else name))
    items.sort(
        key=lambda item: (not item.path.stem.startswith("test_live"), "_browser" not in item.path.stem)
    )


@pytest.fixture(scope="session", autouse=True)
def own_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the tests answer goes into a file of their own, never into the user's data; they answer fast."""
    os.environ["DPSIM_LIMITS"] = "off"
    os.environ["DPSIM_DATABASE"] = f"sqlite:///{tmp_path_factory.mktemp('store') / 'progress.sqlite3'}"


@pytest.fixture(scope="session")
def app_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the app's server writes what it has to say."""
    return tmp_path_factory.mktemp("app") / "server.log"


@pytest.fixture(scope="session")
def app_url(app_log: Path) -> Iterator[str]:
    """The URL of the app, served for the whole session."""
    with served_app(app_log) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for the session. Without one: skipped, or failed where DPSIM_REQUIRE_BROWSER is 1."""
    path = chromium_path()
    if path is None:
        if os.environ.get("DPSIM_REQUIRE_BROWSER") == "1":
            pytest.fail(no_chromium())
        pytest.skip(no_chromium())
    with launched_chromium(path) as browser:
        yield browser


@pytest.fixture(scope="session")
def contexts(chromium: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """A context for each kind of window, shared by all tests: what pages load is fetched just once."""
    made: dict[str, BrowserContext] = {}

    def context(**options: Any) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in made:
            made[key] = chromium.new_context(**options)
            made[key].set_default_timeout(45_000)
            made[key].new_page()  # stays, and the renderer with it
        return made[key]

    yield context
    for each in made.values():
        each.close()


@pytest.fixture
def pages(contexts: Callable[..., BrowserContext], request: pytest.FixtureRequest) -> Iterator[Pages]:
    """Gives, for a kind of page and the URL that serves it, what opens such a page in a new tab, drawn.
    At the end no page may have had an error, nor asked anybody but the app for anything."""
    opened: list[Any] = []
    moves = request.node.get_closest_marker("moves") is not None
    window = {"viewport": DESKTOP, "color_scheme": "light"}
    window |= {"reduced_motion": "no-preference" if moves else "reduce"}  # frames cost most of the time

    def pages(kind: Any, url: str) -> Callable[..., Any]:
        def visit(*where: str, **options: Any) -> Any:
            context = contexts(**{**window, **options})
            opened.append(kind(context.new_page(), url))
            opened[-1].open(*where)
            return opened[-1]

        return visit

    yield pages
    faults = [fault for page in opened for fault in page.faults]
    for page in opened:
        if not page.page.is_closed():
            page.page.evaluate(FORGET)  # the next test's page is a new learner's
            page.page.close()
    assert not faults, "\n".join(faults)


@pytest.fixture
def visit(pages: Pages, app_url: str) -> Callable[..., Stage]:
    """Opens the first page."""
    from stage_page import Stage

    return pages(Stage, app_url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server. Without one: skipped, or failed where DPSIM_REQUIRE_POSTGRES is 1."""
    programs = postgres_programs()
    if programs is None:
        if os.environ.get("DPSIM_REQUIRE_POSTGRES") == "1":
            pytest.fail(NO_POSTGRES)
        pytest.skip(NO_POSTGRES)
    with served_postgres(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'p.sqlite3'}"
    import sqlalchemy as sql

    server, name = request.getfixturevalue("postgres"), f"d{time.monotonic_ns()}"
    engine = sql.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sql.pool.NullPool)
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE {name}"))
    return str(server).replace("/postgres?", f"/{name}?")


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Store]]:
    """Opens the database anew, as a process does that has just started."""
    from dpsim.store import Store

    made: list[Store] = []

    def anew() -> Store:
        made.append(Store(url))
        return made[-1]

    yield anew
    for each in made:
        each.close()

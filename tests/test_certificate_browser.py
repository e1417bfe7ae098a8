"""A certificate from the test's result to whoever verifies it, in a real Chromium."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
from lesson_page import LessonPage
from passing import KEY, WHO, sat, settings
from playwright.sync_api import Browser, expect
from serving import ROOT, free_port, served
from test_lessons_browser import serious

from dpsim.credential.baked import token_in
from dpsim.credential.keys import load
from dpsim.credential.operator import Operator
from dpsim.credential.status import read_list
from dpsim.credential.verify import verify
from dpsim.issuing import issue
from dpsim.recovery import learner_id
from dpsim.store import Store

pytestmark = pytest.mark.browser

OTHER = learner_id("f" * 32)
NAME = "Ada <b>Løvelace</b>"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@dataclass(frozen=True)
class Server:
    url: str
    kept: Store
    log: Path
    key: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with a key of its own, and one learner who has passed the test."""
    folder, port = tmp_path_factory.mktemp("issuer"), free_port()
    database = f"sqlite:///{folder / 'p.sqlite3'}"
    kept = Store(database)
    sat(kept, 31)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    environment = os.environ | settings(folder, f"http://localhost:{port}", database)
    with served(command, port, folder / "server.log", ROOT, environment) as url:
        yield Server(url, kept, folder / "server.log", folder / "key.pem")


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[LessonPage]:
    """The learner's browser."""
    context = chromium.new_context(viewport=DESKTOP, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(45_000)
    context.add_init_script(f"try {{ localStorage.setItem('dpsim.key', '{KEY}'); }} catch {{}}")
    made = LessonPage(context.new_page(), server.url)
    yield made
    assert not made.faults
    context.close()


def fetched(url: str) -> str:
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        return str(answer.read().decode())


def looks_well(page: LessonPage, scheme: str = "dark") -> None:
    """Nothing is cut off on a phone, nor faint there."""
    page.page.set_viewport_size(PHONE)
    page.turn(scheme)
    assert page.too_wide() == []
    assert serious(page) == []
    page.page.set_viewport_size(DESKTOP)


def test_from_a_passed_test_to_a_verified_picture_and_nothing_of_it_in_the_log(
    page: LessonPage, server: Server, tmp_path: Path
) -> None:
    page.page.goto(f"{server.url}/test")
    page.page.get_by_label("Name on the certificate").fill(NAME)
    page.page.get_by_role("button", name="Issue my certificate").click()
    expect(page.main).to_contain_text(NAME)
    (made,) = server.kept.certificates(WHO)
    files: dict[str, bytes] = {}
    for label in ("PDF, to print", "Picture, with the credential in it", "The credential itself"):
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name=label).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        files[path.suffix] = path.read_bytes()
    assert files[".pdf"].startswith(b"%PDF")
    assert files[".jwt"].decode() == token_in(files[".png"]) == made.jwt
    looks_well(page)

    page.page.get_by_role("link", name="Verify it").click()
    expect(page.alerts.first).to_contain_text("Valid.")
    assert page.asked("id") == made.id
    looks_well(page, "light")
    page.page.goto(f"{server.url}/verify")
    page.page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(
        tmp_path / "dpsim-certificate.png"
    )
    page.page.get_by_role("button", name="Verify").first.click()
    expect(page.alerts.first).to_contain_text("Valid.")
    expect(page.main).to_contain_text(NAME)

    log = server.log.read_text("utf-8")
    assert log
    assert not any(secret in log for secret in (NAME, "Ada", KEY, WHO, made.id, made.jwt))


def test_the_server_publishes_its_keys_and_what_was_revoked(server: Server) -> None:
    document = json.loads(fetched(f"{server.url}/.well-known/did.json"))
    assert document == json.loads(fetched(f"{server.url}/did.json"))
    assert document["id"] == "did:web:localhost%3A" + server.url.rpartition(":")[2]
    assert '"d"' not in json.dumps(document)
    base = f"http://localhost:{server.url.rpartition(':')[2]}"
    index = server.kept.draw_index()
    assert not read_list(fetched(f"{server.url}/status/1"), document, f"{base}/status/1").is_revoked(index)
    server.kept.revoke_index(index)
    assert read_list(fetched(f"{server.url}/status/1"), document, f"{base}/status/1").is_revoked(index)


def test_what_was_issued_verifies_by_what_the_server_publishes(server: Server) -> None:
    document, listed = (json.loads(fetched(f"{server.url}/did.json")), fetched(f"{server.url}/status/1"))
    by = Operator(load(server.key), f"http://localhost:{server.url.rpartition(':')[2]}", "A school")
    made = issue(by, server.kept, OTHER, sat(server.kept, 30, OTHER), "")
    found = verify(made.jwt, document, listed, made.issued_at + 1)
    assert {check.outcome for check in found.checks} == {"passed"}


def test_the_page_for_teachers_gives_a_file_and_looks_well(page: LessonPage, server: Server) -> None:
    page.page.goto(f"{server.url}/teach")
    page.page.get_by_role("button", name="Make the file").click()
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Download the Moodle XML file").click()
    assert download.value.suggested_filename == "dpsim-exercises.xml"
    page.page.get_by_label("Exercises as YAML").fill("- id: mine")
    page.page.get_by_role("button", name="Check").click()
    expect(page.alerts.first).to_contain_text("line 1")
    looks_well(page)

"""Certificates in the app without a browser: issued, verified, refused; what a server without a key says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from certificates import opened as decoded
from certificates import operator, token, written
from passing import KEY, WHO, sat, settings
from streamlit.testing.v1 import AppTest
from test_app import APP, is_fine, page_text, plain
from test_progress_app import says

from dpsim import rates
from dpsim.cli import main
from dpsim.credential import operator as operators
from dpsim.issuing import issue, issued
from dpsim.kept_tests import Certificate
from dpsim.store import Store, store

NAME = "<img src=x onerror=alert(1)> *Ada*"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The database of a server that issues certificates."""
    url = f"sqlite:///{tmp_path / 'p.sqlite3'}"
    for name, value in settings(tmp_path, "https://learn.example.org/dpsim", url).items():
        monkeypatch.setenv(name, value)
    return store(url)


def opened(page: str, **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page(f"pages/{page}.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def result(kept: Store) -> AppTest:
    """The result of a test that was passed, for the learner."""
    sat(kept, 31)
    return says(opened("test"), KEY)


def issues(app: AppTest, name: str) -> AppTest:
    app.text_input(key="certificate.name").set_value(name)
    return app.button(key="certificate.go").click().run()


def certificate(kept: Store, name: str = "Ada") -> Certificate:
    by = operators.operator()
    assert by is not None
    return issue(by, kept, WHO, sat(kept, 31), name)


def messages(app: AppTest) -> list[str]:
    return [plain(block.value) for block in (*app.error, *app.warning, *app.info)]


def verdict(app: AppTest) -> str:
    """The headline of what was verified."""
    (found,) = [b.value for b in (*app.success, *app.error, *app.warning) if b.value.startswith("**")]
    return str(found).split("**")[1]


def test_whoever_passed_gets_a_certificate_with_a_name_that_is_no_markup(kept: Store) -> None:
    app = result(kept)
    assert "Without one. It carries no name" in page_text(app).replace("*", "")
    issues(app, NAME)
    assert not (*app.exception, *app.error)
    assert NAME in page_text(app)
    (made,) = kept.certificates(WHO)
    assert issued(kept, WHO, kept.tests(WHO)[0]) == made
    assert {f"certificate{e}" for e in (".pdf", ".png", ".jwt")} <= {
        b.key for b in app.get("download_button")
    }
    assert f"https://learn.example.org/dpsim/verify?id={made.id}" in [block.value for block in app.code]


def test_the_page_says_what_a_certificate_without_a_name_proves(kept: Store) -> None:
    app = issues(result(kept), "")
    assert not (*app.exception, *app.error)
    assert "What it proves. It carries no name" in page_text(app).replace("*", "")
    assert "without a name" in page_text(app)


def test_a_name_that_cannot_be_one_is_a_message_and_stays_typed(kept: Store) -> None:
    app = issues(result(kept), "ada@example.org")
    assert any("name" in said for said in messages(app))
    assert app.text_input(key="certificate.name").value == "ada@example.org"
    assert kept.certificates(WHO) == []


def test_names_that_are_refused_do_not_use_up_what_may_be_issued(kept: Store) -> None:
    app = result(kept)
    for _ in range(rates.RATES["certificate"].browser.amount):
        issues(app, "ada\0")
    assert any("can be seen" in said for said in messages(app))
    issues(app, "Ada")
    assert [c.revoked for c in kept.certificates(WHO)] == [False]


@pytest.mark.parametrize(
    ("gone", "named"), [("DPSIM_KEY", "python -m dpsim keys new"), ("DPSIM_BASE_URL", "DPSIM_BASE_URL=https")]
)
def test_without_key_or_address_nothing_is_issued_and_the_command_is_named(
    kept: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gone: str, named: str
) -> None:
    monkeypatch.delenv(gone)
    before = sorted(path.name for path in tmp_path.rglob("*.pem"))
    app = result(kept)
    assert named in page_text(app)
    assert "certificate.go" not in {button.key for button in app.button}
    assert sorted(path.name for path in tmp_path.rglob("*.pem")) == before, "no key is made unasked"


def test_a_key_that_cannot_be_read_is_said_without_its_text(
    kept: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key.pem").write_text("-----BEGIN SECRET-----\nc2VjcmV0\n-----END SECRET-----\n")
    app = result(kept)
    assert any("No certificate can be issued here" in said for said in messages(app))
    assert not any("c2VjcmV0" in said for said in messages(app))


def test_who_did_not_pass_is_offered_none(kept: Store) -> None:
    sat(kept, 28)
    app = says(opened("test"), KEY)
    assert "certificate.go" not in {button.key for button in app.button}


def test_by_its_id_a_certificate_is_verified_in_every_check(kept: Store) -> None:
    made = certificate(kept, NAME)
    app = opened("verify", id=f" {made.id} ")
    assert verdict(app) == "Valid."
    assert page_text(app).count("· passed") == 5
    assert NAME in page_text(app)
    assert "31 of 36 right; 29 were required" in page_text(app)


def test_revoked_it_is_not_valid_and_the_check_says_so(kept: Store) -> None:
    made = certificate(kept)
    assert main(["revoke", made.id]) == 0
    app = opened("verify", id=made.id)
    assert verdict(app) == "Not valid."
    assert "revocation · failed" in page_text(app).replace("*", "")


def test_its_learner_is_told_and_gets_no_other_for_the_same_test(kept: Store) -> None:
    made = certificate(kept)
    kept.revoke(made.id)
    app = says(opened("test"), KEY)
    assert any("was revoked by whoever runs this server" in said for said in messages(app))
    assert "certificate.go" not in {button.key for button in app.button}


def test_after_its_learner_was_deleted_its_id_is_unknown_and_its_text_still_verifies(kept: Store) -> None:
    made = certificate(kept)
    kept.delete(WHO)
    app = opened("verify", id=made.id)
    assert any("No certificate with this id is known here" in said for said in messages(app))
    app.text_area(key="verify.text").set_value(f" {made.jwt}\n")
    app.button(key="verify.go-text").click().run()
    assert verdict(app) == "Valid."


@pytest.mark.parametrize(
    "text",
    ["eyJ", "a.b.c", "<script>alert(1)</script>", "x" * 60_000, "\x00", "=1+1"],
)
def test_what_is_no_certificate_is_not_valid_and_says_why(kept: Store, text: str) -> None:
    app = opened("verify")
    app.text_area(key="verify.text").set_value(text)
    app.button(key="verify.go-text").click().run()
    assert not app.exception
    assert verdict(app) == "Not valid."


def test_an_altered_score_is_not_valid_and_nothing_it_says_is_shown(kept: Store) -> None:
    made = certificate(kept)
    app = opened("verify")
    payload = decoded(made.jwt, 1)
    payload["credentialSubject"]["result"][0]["value"] = "36"
    head, _, signature = made.jwt.split(".")
    app.text_area(key="verify.text").set_value(f"{head}.{written(payload)}.{signature}")
    app.button(key="verify.go-text").click().run()
    assert verdict(app) == "Not valid."
    assert "What it says" not in page_text(app)


def test_of_another_issuer_it_is_not_verified_for_want_of_keys(kept: Store) -> None:
    app = opened("verify")
    app.text_area(key="verify.text").set_value(token(operator()))
    app.button(key="verify.go-text").click().run()
    assert verdict(app) == "Not verified."


@pytest.mark.parametrize(
    "id", ["", "nonsense", "3f2c8a10-9d57-4e0b-8b1e-0c6a5d4e3f21", "' OR 1=1 --", "<b>x</b>"]
)
def test_an_id_that_is_not_known_is_a_message(kept: Store, id: str) -> None:
    app = opened("verify", id=id)
    assert not app.exception
    assert any("known here" in said or "Type the id" in said for said in messages(app))


def test_nothing_chosen_is_a_message(kept: Store) -> None:
    app = opened("verify")
    for way, said in (
        ("file", "Choose a file first."),
        ("text", "Paste the text first."),
        ("id", "Type the id"),
    ):
        app.button(key=f"verify.go-{way}").click().run()
        assert any(said in message for message in messages(app)), way


def test_verifying_in_a_loop_is_slowed_down_and_keeps_what_was_typed(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSIM_LIMITS", "on")
    rates._counts.cache_clear()
    app = opened("verify")
    for _ in range(21):
        app.text_area(key="verify.text").set_value("a.b.c")
        app.button(key="verify.go-text").click().run()
    assert any("Try again in" in said for said in messages(app))
    assert app.text_area(key="verify.text").value == "a.b.c"
    rates._counts.cache_clear()


def test_the_page_for_teachers_makes_both_files(kept: Store) -> None:
    app = opened("teach")
    is_fine(app)
    for form, begins in (("moodle", "<?xml"), ("gift", "$CATEGORY")):
        app.radio(key="teach.format").set_value(form)
        app.multiselect(key="teach.topics").set_value(["tokens"])
        app.number_input(key="teach.variants").set_value(2)
        app.button(key="teach.go").click().run()
        is_fine(app)
        made: Any = app.session_state["teach.made"][1]
        assert begins in made.text[:400]
        assert made.report["variants"] == 2


def test_own_exercises_are_checked_there_line_by_line(kept: Store) -> None:
    example = Path("docs/writing-an-item.md").read_text("utf-8").split("~~~~yaml\n")[1].split("~~~~")[0]
    app = opened("teach")
    app.text_area(key="teach.yaml").set_value(example)
    app.button(key="teach.check").click().run()
    is_fine(app)
    assert "What padding costs" in page_text(app)
    app.text_area(key="teach.yaml").set_value(example.replace("answer: 100", "answer: __import__('os')"))
    app.button(key="teach.check").click().run()
    assert not app.exception
    assert any("line" in said for said in messages(app))

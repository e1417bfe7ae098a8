"""The page that verifies certificates offline, opened from disk in a real Chromium.

Whatever it is given, it has to find the same as Python's own checks, in the same words; nothing may leave it.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from certificates import (
    ISSUED,
    NOW,
    altered,
    forged,
    opened,
    operator,
    part,
    private,
    subject,
    token,
    with_header,
    with_payload,
    written,
)  # fmt: skip
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Browser, Page, expect

from dpsim.credential.baked import bake
from dpsim.credential.keys import jwk
from dpsim.credential.paper import pdf
from dpsim.credential.picture import png
from dpsim.credential.shown import NAMED, NAMELESS, Shown
from dpsim.credential.status import status_list
from dpsim.credential.verify import verify
from dpsim.credential.verify_page import html

pytestmark = pytest.mark.browser

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
RESULT = """() => ({
    outcome: document.querySelector("#outcome").textContent,
    checks: [...document.querySelectorAll("#checks li")].map((li) =>
        ["b", ".found", ".said"].map((part) => li.querySelector(part).textContent)),
    facts: Object.fromEntries([...document.querySelectorAll("#facts div")].map((div) =>
        [div.querySelector("dt").textContent, div.querySelector("dd").textContent])),
    problem: document.querySelector("#problem").textContent,
    shown: !document.querySelector("#result").hidden,
})"""
DONE = "#result:not([hidden]), #problem:not(:empty)"
DROP = """([text, name]) => {
    const carried = new DataTransfer();
    const content = typeof text === "number" ? new Uint8Array(text) : text; // so many zeros
    if (name) carried.items.add(new File([content], name)); else carried.setData("text", text);
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true }));
}"""
PASTE = """(text) => {
    const carried = new DataTransfer();
    carried.setData("text", text);
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true }));
}"""


@dataclass
class Verifier:
    """The page, open; everything that it asked for, and everything that went wrong in it."""

    page: Page
    asked: list[str]
    wrong: list[str]

    def check(self, *files: str | bytes) -> dict[str, Any]:
        """What the page shows of files, which are chosen together."""
        self.page.locator("#again").click()
        given = [
            {"name": f"{i}.jwt", "mimeType": "", "buffer": file.encode() if isinstance(file, str) else file}
            for i, file in enumerate(files)
        ]
        self.page.locator("#file").set_input_files(given)
        return self.result()

    def result(self) -> dict[str, Any]:
        self.page.locator(DONE).first.wait_for()
        found: dict[str, Any] = self.page.evaluate(RESULT)
        return found


@pytest.fixture(scope="module")
def opening(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Verifier]]:
    """Opens the page of an issuer from disk, at the time NOW."""
    made: list[Verifier] = []
    folder = tmp_path_factory.mktemp("pages")

    def opening(document: Any = None, before: str = "", **options: Any) -> Verifier:
        file = folder / f"{len(made)}.html"
        file.write_text(html(document or operator().did_document()), "utf-8")
        page = chromium.new_context(**{"viewport": WIDE, **options}).new_page()
        page.clock.set_fixed_time(datetime.fromtimestamp(NOW, UTC))
        if before:
            page.add_init_script(before)
        opened = Verifier(page, [], [])
        page.on("request", lambda request: opened.asked.append(request.url))
        page.on("pageerror", lambda error: opened.wrong.append(str(error)))
        page.on("console", lambda message: opened.wrong.append(message.text))
        page.goto(file.as_uri())
        made.append(opened)
        return opened

    yield opening
    for each in made:
        url = each.page.url
        each.page.context.close()
        assert (each.asked, each.wrong) == ([url], [])


@pytest.fixture(scope="module")
def verifier(opening: Callable[..., Verifier]) -> Verifier:
    return opening()


@pytest.fixture(scope="module")
def rotated(opening: Callable[..., Verifier]) -> Verifier:
    """The same of an issuer that has a former key."""
    return opening(operator("now", ("former",)).did_document())


def picture(text: str, **how: Any) -> bytes:
    """A PNG with the token as Pillow writes it."""
    info, out = PngInfo(), io.BytesIO()
    info.add_itxt("openbadgecredential", text, **how)
    Image.new("RGB", (2, 2)).save(out, "PNG", pnginfo=info)
    return out.getvalue()


def hs256(secret: bytes) -> str:
    message = with_header({"alg": "HS256"}).rpartition(".")[0]
    return f"{message}.{part(hmac.digest(secret, message.encode(), hashlib.sha256))}"


def twice(text: str, which: int, first: bytes) -> str:
    parts = text.split(".")
    parts[which] = part(b"{" + first + b", " + json.dumps(opened(text, which)).encode()[1:])
    return forged(parts[0], parts[1])


def member(*path: Any, value: Any = None) -> str:
    """The certificate with one member changed, or taken out, under a good signature."""

    def change(payload: Any) -> None:
        *way, last = path
        for step in way:
            payload = payload[step]
        if value is None:
            payload.pop(last)
        else:
            payload[last] = value

    return with_payload(change)


def titled(title: str) -> str:
    """The certificate with another title, written without escapes."""
    header, payload = token().split(".")[0], opened(token(), 1) | {"name": title}
    return forged(header, part(json.dumps(payload, ensure_ascii=False).encode()))


def listed(*revoked: int, at: float = ISSUED, **of: Any) -> str:
    return status_list(of.get("by") or operator(), revoked, at)


def list_with(**changed: Any) -> str:
    """A status list whose subject is changed, under a good signature."""
    header, payload = listed().split(".")[0], opened(listed(), 1)
    subject(payload).update(changed)
    return forged(header, written(payload))


def by_another() -> str:
    """The certificate as one that says that somebody else issued it."""

    def change(payload: Any) -> None:
        payload["issuer"]["id"] = payload["iss"] = "did:web:eve.example"

    return with_payload(change)


PUBLIC = private("now").public_key()
PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
FORGED = {
    "changed score": altered(lambda payload: subject(payload)["result"][0].update(value="25")),
    "changed name": altered(lambda payload: subject(payload)["identifier"][0].update(identityHash="Eve")),
    "changed date": altered(lambda payload: payload.update(validFrom="2023-01-01T00:00:00Z", nbf=1672531200)),
    "another key": forged(*token().split(".")[:2], private("eve")),
    "unknown key": token(operator("eve")),
    "none": with_header({"alg": "none"}).rpartition(".")[0] + "." + part(bytes(64)),
    "HS256 with the public key": hs256(PEM),
    "ES384": with_header({"alg": "ES384"}),
    "key in the header": with_header({"jwk": jwk(private("eve").public_key())}),
    "typ": with_header({"typ": "vc+jwt"}),
    "kid": with_header({"kid": "did:web:learn.example.org"}),
    "header key twice": twice(token(), 0, b'"alg": "none"'),
    "payload key twice": twice(token(), 1, b'"iss": "did:web:eve.example"'),
    "key twice, escaped": twice(token(), 1, b'"\\u0069ss": "did:web:eve.example"'),
    "inner key twice": twice(token(), 1, b'"a": [{"b": {"c": "c"}, "b": "b:"}]'),
    "NaN": twice(token(), 1, b'"a": NaN'),
    "half a pair": twice(token(), 1, b'"a": "\\ud800"'),
    "too deep": twice(token(), 1, b'"a": ' + b"[" * 12 + b"]" * 12),
    "very deep": twice(token(), 1, b'"a": ' + b"[" * 20_000 + b"]" * 20_000),
    "no UTF-8": forged(token().split(".")[0], part(b'{"a": "\xff"}')),
    "byte order mark": forged(token().split(".")[0], part(b"\xef\xbb\xbf{}")),
    "a list": forged(token().split(".")[0], part(b"[]")),
    "r and s zero": token().rpartition(".")[0] + "." + part(bytes(64)),
    "63 bytes": token().rpartition(".")[0] + "." + part(bytes(63)),
    "spare bits": token()[:-1] + chr(ord(token()[-1]) + 1),
}  # fmt: skip
OF_ANOTHER_FORM = {
    "context": member("@context", value=["https://www.w3.org/ns/credentials/v2"]),
    "type": member("type", 1),
    "issuer": member("issuer", value="did:web:learn.example.org"),
    "issuer type": member("issuer", "type", value="Profile"),
    "subject id": member("credentialSubject", "id", value="urn:uuid:3F2C8A10-9D57-4E0B-8B1E-0C6A5D4E3F21"),
    "criteria": member("credentialSubject", "achievement", "criteria", "narrative"),
    "two results": member("credentialSubject", "result", value=[{}, {}]),
    "score above": member("credentialSubject", "result", 0, "value", value="26"),
    "score below": member("credentialSubject", "result", 0, "value", value="19"),
    "score as number": member("credentialSubject", "result", 0, "value", value=23),
    "score with zero": member("credentialSubject", "result", 0, "value", value="023"),
    "hashed": member("credentialSubject", "identifier", 0, "hashed", value=True),
    "empty name": member("credentialSubject", "identifier", 0, "identityHash", value=""),
    "long title": titled("\U0001f680" * 4001),
    "purpose": member("credentialStatus", "statusPurpose", value="suspension"),
    "30 February": member("validFrom", value="2023-02-30T00:00:00Z"),
    "hour 24": member("validFrom", value="2023-02-03T24:00:00Z"),
    "year 0": member("validFrom", value="0000-02-03T00:00:00Z"),
    "other time": member("awardedDate", value="2023-02-03T00:00:00+00:00"),
    "nbf": member("nbf", value=1),
    "nbf as text": member("nbf", value=str(int(ISSUED))),
    "no iss": member("iss"),
    "sub": member("sub", value="urn:uuid:3f2c8a10-9d57-4e0b-8b1e-0c6a5d4e3f21"),
    "exp": member("exp", value=2_000_000_000),
    "issuer id": by_another(),
}  # fmt: skip


def until(value: str, exp: int) -> str:
    return with_payload(lambda payload: payload.update(validUntil=value, exp=exp))


def later(value: str, nbf: int) -> str:
    return with_payload(lambda payload: payload.update(validFrom=value, nbf=nbf))


OTHERS = {
    "good": token(),
    "without a name": token(name=""),
    "other members": member("extra", value={"a": [1.5, None, True, "\U0001f680"]}),
    "title that is just short enough": titled("\U0001f680" * 4000),
    "ended": until("2023-11-14T22:16:39Z", 1_700_000_199),
    "not yet ended": until("2023-11-14T22:16:41Z", 1_700_000_201),
    "within the clocks' difference": later("2023-11-14T22:21:40Z", 1_700_000_500),
    "to come": later("2023-11-14T22:21:41Z", 1_700_000_501),
    "another issuer's": token(operator("eve", url="https://eve.example")),
    "a former key's": token(operator("former")),
}
INDEX = 94_567
LISTS = {
    "not revoked": listed(INDEX - 1, INDEX + 1),
    "revoked": listed(INDEX),
    "old": listed(at=NOW - 40 * 86_400),
    "old and revoked": listed(INDEX, at=NOW - 40 * 86_400),
    "to come": listed(at=NOW + 301),
    "signed by another": forged(*listed().split(".")[:2], private("eve")),
    "another issuer's": listed(by=operator("eve", url="https://eve.example")),
    "another purpose": list_with(statusPurpose="suspension"),
    "not compressed": list_with(encodedList="u" + part(bytes(16_384))),
    "no multibase": list_with(encodedList=part(gzip.compress(bytes(16_384)))),
    "too short": list_with(encodedList="u" + part(gzip.compress(bytes(16_383)))),
    "too long": list_with(encodedList="u" + part(gzip.compress(bytes(16_385)))),
    "cut off": list_with(encodedList="u" + part(gzip.compress(bytes(16_384))[:-1])),
    "followed by something": list_with(encodedList="u" + part(gzip.compress(bytes(16_384)) * 2)),
    "a bomb": list_with(encodedList="u" + part(gzip.compress(bytes(30_000_000)))),
    "no list at all": list_with(encodedList=None),
}


def agrees(found: dict[str, Any], text: str, list_text: str | None, document: Any = None) -> None:
    """The page found the same as Python, in the same words."""
    wanted = verify(text, document or operator("now", ("former",)).did_document(), list_text, NOW)
    assert found["checks"] == [[each.name, each.outcome, each.said] for each in wanted.checks]
    assert found["outcome"].lower() == wanted.outcome
    facts = wanted.facts
    assert (found["facts"] == {}) == (facts is None)
    if facts is not None:
        assert found["facts"]["Name"] == (facts.name or "none")
        assert found["facts"]["Passed"] == facts.title
        assert found["facts"]["Certificate"] == str(facts.id)
        assert found["facts"]["Score"].startswith(f"{facts.right} of {facts.of} (")
        assert found["facts"]["Score"].endswith(f"; {facts.required} were required")
        assert (found["facts"]["Issued by"], found["facts"]["Key"]) == (facts.issuer, wanted.kid)


def test_a_good_certificate_is_valid_and_says_what_was_not_checked(verifier: Verifier) -> None:
    found = verifier.check(token() + "\n")
    assert found["outcome"] == "Valid"
    assert found["facts"]["Score"] == "23 of 25 (92 %); 20 were required"
    assert found["facts"]["Name"] == "Ada Lovelace"
    page = verifier.page
    expect(page.locator("#meaning")).to_have_text(
        "The issuer has signed exactly what stands below. Not checked: revocation."
    )
    expect(page.locator("#proves")).to_have_text(NAMED)
    expect(page.locator("#outcome")).to_be_focused()
    verifier.check(token(name=""))
    expect(page.locator("#proves")).to_have_text(NAMELESS)
    verifier.check(token(), listed())
    expect(page.locator("#meaning")).to_have_text("The issuer has signed exactly what stands below.")


@pytest.mark.parametrize("which", FORGED)
def test_a_forged_certificate_is_refused_and_nothing_of_it_is_shown(rotated: Verifier, which: str) -> None:
    found = rotated.check(FORGED[which])
    agrees(found, FORGED[which], None)
    assert (found["outcome"], found["facts"]) == ("Not valid", {})
    assert not re.findall("Ada|Eve|of 25", rotated.page.locator("main").inner_text())


def test_a_token_without_any_signature_is_not_even_one(rotated: Verifier) -> None:
    found = rotated.check(with_header({"alg": "none"}).rpartition(".")[0] + ".")
    assert "must be a signed token" in found["problem"]
    assert not found["shown"]


def test_it_finds_the_same_as_python_in_the_same_words(rotated: Verifier) -> None:
    for text in (OF_ANOTHER_FORM | OTHERS).values():
        agrees(rotated.check(text), text, None)


def test_status_lists_say_the_same_as_in_python(rotated: Verifier) -> None:
    for list_text in LISTS.values():
        agrees(rotated.check(token(), list_text), token(), list_text)
        agrees(rotated.check(list_text, token()), token(), list_text)
    outside = member("credentialStatus", "statusListIndex", value="131072")
    agrees(rotated.check(outside, listed()), outside, listed())


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(assertionMethod=[]),
        lambda found: found.update(verificationMethod=found["verificationMethod"] * 2),
        lambda found: found["verificationMethod"][0].update(controller="did:web:eve.example"),
        lambda found: found["verificationMethod"][0]["publicKeyJwk"].update(crv="P-384"),
        lambda found: found["verificationMethod"][0]["publicKeyJwk"].update(d=part(bytes(32))),
        lambda found: found["verificationMethod"][0]["publicKeyJwk"].update(x=part(b"\1" * 32)),
        lambda found: found["verificationMethod"][0]["publicKeyJwk"].update(y=part(b"\1" * 31)),
    ],
)
def test_a_document_with_a_key_that_cannot_be_used_fails_as_in_python(
    opening: Callable[..., Verifier], change: Callable[[Any], object]
) -> None:
    document = operator().did_document()
    change(document)
    found = opening(document).check(token())
    agrees(found, token(), None, document)
    assert found["checks"][1][1] == "failed"


def test_pictures_give_up_their_certificate(verifier: Verifier) -> None:
    shown = Shown("1", "", "A test", "1 of 1", "today", "A school", "https://example.org")
    for data in (
        bake(png(shown), token()),
        picture(token()),
        picture(token(), zip=True, lang="en", tkey="x"),
    ):
        assert verifier.check(data)["outcome"] == "Valid"


def broken_pictures() -> Iterator[tuple[str, bytes]]:
    good, plain = picture(token()), io.BytesIO()
    at, end = good.index(b"openbadgecredential"), good[-12:]
    Image.new("RGB", (2, 2)).save(plain, "PNG")
    yield "must hold one credential.", plain.getvalue()
    yield "must hold one credential.", good[:-12] + good[at - 8 :]  # two
    yield "must have chunks with the right checksum.", good[: at + 40] + b"~" + good[at + 41 :]
    yield "must begin with IHDR and end with IEND.", good[:8]
    yield "must begin with IHDR and end with IEND.", good[:-12]
    yield "must begin with IHDR and end with IEND.", good + end
    yield "must begin with IHDR and end with IEND.", good[:8] + good[33:]
    yield "must have whole chunks.", good[:-6]
    yield "must begin with IHDR and end with IEND.", good + b"x"
    yield "comes to at most 65536 bytes, decompressed.", picture("a.b." + "c" * 40_000_000, zip=True)
    yield "of at most 65536 characters, or a PNG with one in it.", picture("a.b." + "c" * 70_000)
    yield "must be a signed token", b"\xff\xd8\xff"


def test_broken_pictures_and_other_files_are_refused_in_a_sentence(verifier: Verifier) -> None:
    for words, data in broken_pictures():
        found = verifier.check(data)
        assert words in found["problem"]
        assert found["problem"].startswith("0.jwt was not checked. ")
        assert not found["shown"]
    assert not verifier.check(pdf(Shown("1", "", "T", "1", "2", "I", "https://e.org")))["shown"]


def test_text_and_files_come_by_keyboard_paste_and_drop(opening: Callable[..., Verifier]) -> None:
    verifier = opening()
    page = verifier.page
    page.keyboard.press("Tab")
    expect(page.locator("#file")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.insert_text(f"  {token()}\n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert verifier.result()["outcome"] == "Valid"
    page.keyboard.press("Tab")  # from the outcome to the start of the page again
    for how, what in (
        (PASTE, FORGED["changed name"]),
        (DROP, [token(), "a.jwt"]),
        (DROP, [FORGED["ES384"], ""]),
    ):
        page.locator("#again").click()
        expect(page.locator("#result")).to_be_hidden()
        page.evaluate(how, what)
        assert verifier.result()["outcome"] == ("Valid" if what[-1] == "a.jwt" else "Not valid")
    page.evaluate(DROP, [listed(INDEX), "list.jwt"])  # added to the certificate that is there
    page.evaluate(DROP, [token(), "a.jwt"])
    expect(page.locator("#given")).to_have_text("Certificate: a.jwt. Status list: list.jwt.")
    expect(page.locator("#checks")).to_contain_text("The issuer has revoked it")
    page.evaluate(DROP, ["nonsense", "b.jwt"])
    expect(page.get_by_role("alert")).to_contain_text("b.jwt was not checked.")
    expect(page.locator("#result")).to_be_hidden()  # what was shown was not about this file
    page.evaluate(DROP, [10_000_001, "large.png"])
    expect(page.get_by_role("alert")).to_contain_text(
        "large.png was not checked. It must have at most 10000000 bytes."
    )


def test_what_a_certificate_says_is_only_text(verifier: Verifier) -> None:
    name = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202eeve {{x}} &amp;"
    found = verifier.check(member("credentialSubject", "identifier", 0, "identityHash", value=name))
    assert found["facts"]["Name"] == name
    assert verifier.page.locator("img, main script, iframe, a").count() == 0


def test_an_issuer_with_a_hostile_document_stays_data(opening: Callable[..., Verifier]) -> None:
    document = {**operator().did_document(), "note": "</script><script>alert(1)</script><!--"}
    assert opening(document).check(token())["outcome"] == "Valid"


def test_its_policy_lets_nothing_else_run_load_or_leave(opening: Callable[..., Verifier]) -> None:
    text = html(operator().did_document())
    (policy,) = re.findall(r'Content-Security-Policy" content="(.+?)"', text)
    assert policy.split("; ")[0] == "default-src 'none'"
    assert "unsafe" not in policy
    assert not re.findall(
        r"(?:src|href)\s*=|@import|\burl\(|innerHTML|insertAdjacent|eval\(", text.replace(policy, "")
    )
    verifier = opening()
    tries = """async () => {
        const found = [];
        document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
        await fetch("https://example.org/").catch(() => null);
        try { document.body.innerHTML = "<b>x</b>"; } catch {}
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        await new Promise((resolve) => (image.onerror = resolve));
        const form = document.createElement("form");
        form.action = "https://example.org/";
        document.body.append(form);
        form.submit();
        while (!found.includes("form-action")) await new Promise((resolve) => setTimeout(resolve));
        return found;
    }"""
    found = verifier.page.evaluate(tries)
    assert sorted(set(found)) == ["connect-src", "form-action", "img-src", "require-trusted-types-for"]
    assert verifier.page.locator("b", has_text=re.compile("^x$")).count() == 0
    del verifier.asked[1:], verifier.wrong[:]  # what was tried here, and is said to have been stopped


def test_without_cryptography_it_is_not_verified(opening: Callable[..., Verifier]) -> None:
    verifier = opening(before="Object.defineProperty(globalThis.crypto, 'subtle', { value: undefined })")
    found = verifier.check(token())
    assert (found["outcome"], found["facts"]) == ("Not verified", {})
    assert "no cryptography" in found["checks"][1][2]


def test_without_javascript_it_says_so(opening: Callable[..., Verifier]) -> None:
    page = opening(java_script_enabled=False).page
    assert "This page needs JavaScript" in page.inner_text("main")
    assert page.locator("#take").is_hidden()


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(14, 17, 23)")])
def test_it_reads_on_every_screen_and_by_everyone(
    opening: Callable[..., Verifier], scheme: str, paper: str
) -> None:
    verifier = opening(color_scheme=scheme, bypass_csp=True)  # axe is a script of its own
    page = verifier.page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    long = member("credentialSubject", "identifier", 0, "identityHash", value="W" * 100)
    for files in ((long, listed()), (FORGED["changed score"], b"\0")):
        verifier.check(*files)
        for window in (WIDE, PHONE):
            page.set_viewport_size(window)
            assert page.evaluate("document.documentElement.scrollWidth") <= window["width"]
        faults = Axe().run(page).response["violations"]
        assert not faults, [(fault["id"], [node["target"] for node in fault["nodes"]]) for fault in faults]

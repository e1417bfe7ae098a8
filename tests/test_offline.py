"""The stage as one HTML file: nothing loads, nothing but its own script runs, and the text is all there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from dpsim.beats import beats, beats_as_text
from dpsim.comparison import compare
from dpsim.forms import from_toml, preset
from dpsim.one_file import escaped_json
from dpsim.simulate import simulate
from dpsim.trace_files import from_json
from dpsim.ui.downloads import FILES
from dpsim.ui.stage.offline import offline_page
from dpsim.ui.stage.payload import stage_data

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028"


def page_of(title: str, **more: Any) -> str:
    scenario = replace(preset("first-screen"), title=title.replace("\u2028", ""))
    trace, ways = simulate(scenario), compare(scenario)
    told = beats(trace, ways)
    return offline_page(stage_data(trace, told, ways, told[0].id) | more, told)


def test_its_policy_lets_only_its_own_script_run() -> None:
    page = page_of("Plain")
    (policy,) = re.findall(r'Content-Security-Policy" content="(.+?)"', page)
    (module,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(module.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"script-src 'sha256-{digest}'"]
    assert not re.findall(r"(?:src|href)\s*=|@import|url\(", page.replace(policy, ""))


def test_its_data_cannot_end_the_element_they_stand_in() -> None:
    written = escaped_json({"text": HOSTILE})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"text": HOSTILE}
    assert page_of(HOSTILE).count("<script") == 2


def test_every_beat_stands_in_it_as_text() -> None:
    scenario = preset("first-screen")
    text = unescape(re.sub(r"<[^>]+>", " ", page_of("Plain").split("The same step as text")[1]))
    for beat in beats(simulate(scenario)):
        for part in (beat.title, beat.sentence, *beat.arithmetic, *beat.details):
            assert part in text


@pytest.mark.browser
def test_what_is_taken_along_opens_again(app_url: str, chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto(f"{app_url}/?preset=chapter-19-2")
    page.get_by_text("Take it along").click()
    files = {}
    for label, ending, _, _ in FILES:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label).click()
        assert waiting.value.suggested_filename == f"chapter-19-2{ending}"
        waiting.value.save_as(tmp_path / ending)
        files[ending] = (tmp_path / ending).read_text("utf-8")
    context.close()
    scenario = preset("chapter-19-2")
    assert from_toml(files[".toml"]) == scenario
    assert from_json(files[".trace.json"]).to_json() == simulate(scenario).to_json()
    assert json.loads(files[".perfetto.json"])["traceEvents"]
    assert files[".txt"] == beats_as_text(beats(simulate(scenario))) + "\n"
    assert files[".html"].startswith("<!doctype html>")


@pytest.mark.browser
def test_it_plays_from_disk_and_reads_with_javascript_off(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "stage.html"
    file.write_text(page_of("Plain"), "utf-8")
    context = chromium.new_context()
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.goto(file.as_uri())
    expect(page.locator(".say h2")).to_have_text("Before the step")
    page.keyboard.press("End")
    expect(page.locator(".say h2")).to_have_text("Optimizer step")
    assert page.locator(".card").count() == 4
    assert (asked, wrong) == ([file.as_uri()], [])
    context.close()
    silent = chromium.new_context(java_script_enabled=False)
    page = silent.new_page()
    page.goto(file.as_uri())
    assert "All 4 replicas take the same step" in page.inner_text("body")
    assert page.locator(".stage").is_hidden()
    silent.close()


@pytest.mark.browser
def test_numbers_terms_and_the_blank_screen_work_from_disk(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "stage.html"
    file.write_text(page_of("Plain", present=True), "utf-8")
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.goto(file.as_uri())
    page.keyboard.press("End")
    page.locator(".card .numbers span").first.click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("0.5 − 0.1 × 0.625 = 0.4375")
    panel.get_by_role("button", name="Chunk 0 on rank 0, All-gather, round 1 of 3").click()
    expect(panel).to_contain_text("10, kept as it came")
    page.keyboard.press("Escape")
    page.locator(".sentence .term").first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("A rank's own complete copy")
    page.keyboard.press(".")
    expect(page.locator(".blank")).to_be_visible()
    page.keyboard.press("PageUp")
    expect(page.locator(".blank")).to_be_hidden()
    expect(page.locator(".say h2")).to_have_text("Optimizer step")
    assert wrong == []
    context.close()

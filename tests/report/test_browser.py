"""The page in headless Chromium: real clicks and keys, at the widths of a phone and a desktop, light and dark."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

INDEX = Path("results/smoke/index.html")
SIZES = {"phone": (360, 740), "desktop": (1280, 900)}
sizes = pytest.mark.parametrize("size", SIZES)
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"),
)


def programs() -> tuple[str, str]:
    """Return the browser and its driver; without them skip the test, or fail where all tests must run."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    if None in found:
        message = "no chromium with chromedriver: `make browser` installs Debian's (needs root and apt)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    return found


class Reader:
    """What a person does with a page: look, click, choose, type, press keys."""

    def __init__(self, driver: webdriver.Chrome, site: Path):
        self.driver, self.site = driver, site

    def open(self, size: str = "desktop", scheme: str = "light", path: Path = INDEX, place: str = "") -> None:
        """Open a page of the site at a width, with the colour scheme that the system asks for."""
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get("about:blank")
        self.driver.get((self.site / path).as_uri() + place)

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list:
        """Return the elements that are displayed."""
        return [e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver).move_to_element(element).click().perform()

    def wait(self, condition) -> None:
        WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: condition())

    def script(self, text: str, *arguments):
        return self.driver.execute_script(text, *arguments)

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self) -> str:
        """Name what has the keyboard: its id, name, class or text."""
        return self.script(
            "const e = document.activeElement; return e.id || e.name || e.className || e.textContent.trim()"
        )


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def reader(site, downloads, tmp_path_factory):
    chromium, driver = programs()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_script_timeout(120)
    try:
        browser.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )  # fmt: skip
        yield Reader(browser, site)
    finally:
        browser.quit()


def claims(reader: Reader) -> list[str]:
    rows = reader.all("#scorecard > table > tbody > tr")
    return [row.find_element(By.TAG_NAME, "th").text.split()[0] for row in rows]


def faults(reader: Reader) -> list[tuple[str, str, str]]:
    """Return what axe-core finds on the page: rule, element, how to mend it."""
    found = Axe().run(reader.driver)["violations"]
    return [(v["id"], node["html"][:200], node["failureSummary"]) for v in found for node in v["nodes"]]


def in_view(reader: Reader, selector: str) -> bool:
    box = reader.script("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector)
    covered = reader.script("return document.querySelector('.sections')?.getBoundingClientRect().bottom || 0")
    return covered <= box["top"] + 1 and box["top"] < reader.script("return innerHeight")


def dark(reader: Reader) -> bool:
    background = reader.script("return getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in background.strip("rgba()").split(",")[:3]) < 3 * 128


class TestPage:
    """One class, so that --dist loadscope keeps all tests with one browser."""

    @sizes
    def test_the_scorecard_is_filtered_by_paper_verdict_and_text(self, reader, size):
        reader.open(size)
        count = reader.find("#scorecard output")
        assert claims(reader) == ["C01", "C02", "C03", "C04"] and count.text == "4 of 4 shown"
        Select(reader.find("#scorecard select[name=verdict]")).select_by_visible_text("contradicted")
        assert claims(reader) == ["C03"] and count.text == "1 of 4 shown"
        reader.click("#scorecard button[type=reset]")
        reader.wait(lambda: len(claims(reader)) == 4)
        reader.click("#scorecard input[name=text]")
        reader.press(*"TPU takes")
        assert claims(reader) == ["C04"]
        Select(reader.find("#scorecard select[name=paper]")).select_by_visible_text("MPHD")
        assert claims(reader) == [] and count.text == "0 of 4 shown"

    @sizes
    def test_a_count_of_a_paper_leads_to_its_claims(self, reader, size):
        reader.open(size)
        reader.click("#papers a.not-testable")
        reader.wait(lambda: claims(reader) == ["C04"])
        assert Select(reader.find("#scorecard select[name=paper]")).first_selected_option.text == "HyperBO"
        reader.wait(lambda: in_view(reader, "#scorecard-title"))
        reader.click("#papers article:nth-of-type(2) a[href='#gallery']")
        assert [a.get_attribute("id") for a in reader.all("#gallery article")] == ["mphd_x01"]

    @sizes
    def test_from_a_claim_to_its_figure_its_notebook_and_back(self, reader, size):
        reader.open(size)
        Select(reader.find("#gallery select[name=benchmark]")).select_by_visible_text("pd1")
        assert not reader.find("#hyperbo_tab05").is_displayed()
        reader.click("#claim-hyperbo-C03 a[href='#hyperbo_tab05']")
        reader.wait(lambda: in_view(reader, "#hyperbo_tab05-title"))  # the filter that hid it is off again
        reader.wait(lambda: reader.script("return document.querySelector('#hyperbo_tab05 img').naturalWidth") > 100)
        reader.click("#hyperbo_tab05 a.open-notebook")
        reader.wait(lambda: reader.driver.title == "hyperbo_tab05: Best metric")
        assert reader.find("main h1").text == "Best metric"
        assert "benchmark tables: 2 tasks" in reader.find("main").text
        assert reader.script("return document.querySelector('main img').naturalWidth") > 100
        reader.click("#back")
        reader.wait(lambda: in_view(reader, "#hyperbo_tab05-title"))
        assert reader.focused() == "hyperbo_tab05"

    @sizes
    def test_an_artefact_is_followed_to_its_data_and_provenance(self, reader, size, site, downloads):
        reader.open(size)
        folder = site / "results/smoke/hyperbo/pd1/hyperbo_fig08"
        (downloads / "data.csv").unlink(missing_ok=True)
        reader.click("#hyperbo_fig08_pd1 a.open-data")
        reader.wait(lambda: (downloads / "data.csv").is_file())
        assert (downloads / "data.csv").read_bytes() == (folder / "data.csv").read_bytes()
        reader.click("#hyperbo_fig08_pd1 a.open-provenance")
        reader.wait(lambda: reader.driver.current_url.endswith("pd1/hyperbo_fig08/provenance.json"))
        assert json.loads(reader.find("pre").text) == json.loads((folder / "provenance.json").read_text())

    @sizes
    def test_tests_of_a_claim_and_theory_can_be_read(self, reader, size):
        reader.open(size)
        assert "Said of C02" in reader.find("#claim-hyperbo-C02").text
        assert not reader.all("#claim-hyperbo-C02 details li")
        reader.click("#claim-hyperbo-C02 summary")
        reader.wait(lambda: len(reader.all("#claim-hyperbo-C02 details li")) == 2)
        assert "2 [1.5, 2.5] times" in reader.all("#claim-hyperbo-C02 details li")[1].text
        Select(reader.find("#theory select[name=verdict]")).select_by_visible_text("REFUTED")
        assert len(reader.all("#theory tbody tr")) == 1

    @sizes
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("page", ["index", "notebook"])
    def test_it_fits_and_is_accessible(self, reader, size, scheme, page):
        notebook = Path("results/smoke/hyperbo/tables/hyperbo_fig08/notebook.html")
        reader.open(size, scheme, INDEX if page == "index" else notebook)
        assert (
            reader.script("return document.documentElement.scrollWidth") <= SIZES[size][0]
        )  # a phone's innerWidth grows
        assert dark(reader) == (scheme == "dark")
        assert faults(reader) == []
        reader.script("document.querySelector('main p').style.color = '#777777'")  # too faint on white and on black
        reader.script("document.querySelector('main img').removeAttribute('alt')")
        assert {"color-contrast", "image-alt"} <= {fault[0] for fault in faults(reader)}

    def test_the_page_is_used_with_the_keyboard_alone(self, reader):
        reader.open()
        reader.press(Keys.TAB)
        assert reader.focused() == "skip" and reader.find(".skip").is_displayed()
        # The page moves the focus a moment after a link is followed: a key that comes before lands elsewhere.
        reader.press(Keys.ENTER)
        reader.wait(lambda: reader.focused() == "main")
        reader.press(Keys.TAB)
        assert reader.focused() == "C01"  # the first link after the skipped part: a claim in the first answer
        for _ in range(40):
            if reader.focused().endswith("badge holds"):
                break
            reader.press(Keys.TAB)
        reader.press(Keys.ENTER)
        reader.wait(lambda: reader.focused() == "scorecard")
        assert claims(reader) == ["C01"]
        reader.press(Keys.TAB)
        assert reader.focused() == "paper"
        reader.press(Keys.TAB, "c", Keys.TAB, Keys.TAB, *"c03")  # "c" chooses the first verdict with it
        assert claims(reader) == ["C03"]
        ring = reader.script("return getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid"

    def test_the_theme_follows_the_system_until_it_is_chosen(self, reader):
        reader.open(scheme="dark")
        assert dark(reader) and reader.find("#theme").text == "Theme: auto"
        reader.click("#theme")
        assert not dark(reader) and reader.find("#theme").text == "Theme: light"
        reader.driver.refresh()
        assert not dark(reader)  # remembered
        reader.click("#theme")
        assert dark(reader) and reader.find("#theme").text == "Theme: dark"
        reader.click("#theme")
        assert reader.find("#theme").text == "Theme: auto"

    def test_a_phone_shows_cards_and_a_desktop_a_table(self, reader):
        display = "return getComputedStyle(document.querySelector('#scorecard tbody td')).display"
        reader.open("phone")
        assert reader.script(display) == "block"
        reader.open("desktop")
        assert reader.script(display) == "table-cell"

    def test_a_wide_output_scrolls_by_itself_and_with_the_keyboard(self, reader):
        reader.open("phone", path=Path("results/smoke/hyperbo/tables/hyperbo_fig08/notebook.html"))
        box = "document.querySelector('.output_subarea:has(table)')"
        reader.wait(lambda: reader.script(f"return {box}.tabIndex") == 0)
        reader.script(f"{box}.focus()")
        reader.press(Keys.ARROW_RIGHT)
        reader.wait(lambda: reader.script(f"return {box}.scrollLeft") > 0)

    def test_nothing_but_files_is_asked_for_and_no_script_fails(self, reader):
        reader.driver.get_log("performance")
        reader.driver.get_log("browser")
        for path in (INDEX, Path("results/smoke/hyperbo/tables/hyperbo_fig08/notebook.html")):
            reader.open(path=path)
            reader.script("scrollTo(0, document.body.scrollHeight)")
            time.sleep(0.5)
        messages = [json.loads(entry["message"])["message"] for entry in reader.driver.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert len(asked) >= 3 and [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
        assert reader.driver.get_log("browser") == []

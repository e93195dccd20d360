"""Chromium, driven through Selenium, and the questions that the tests ask it."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
DESKTOP, TELEPHONE = 1200, 390
OWN = ("file:", "data:", "about:", "chrome:", "devtools:")


class Browser:
    """One browser with a profile of its own."""

    def __init__(self, program: str, driver: str, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        options = Options()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.folder, self._pages = folder, 0

    def open(self, page: str, width: int = DESKTOP, scheme: str = "light") -> None:
        """Show a page from a file; what was logged before is forgotten."""
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._pages += 1
        path = self.folder / f"page-{self._pages}.html"
        path.write_text(page, encoding="utf-8")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the page wrote to the console since it was opened, of any level."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses outside of the page that something was asked of."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        pages = [url for url in asked if url.startswith("file:")]
        assert len(set(pages)) == 1, pages  # the page itself: the log is alive
        return [url for url in asked if not url.startswith(OWN)]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.run("const d = document.documentElement; return d.scrollWidth - d.clientWidth"))

    def accessibility(self) -> list[str]:
        """Serious and critical findings of axe-core, with the elements."""
        self.run((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done, (e) => done({error: String(e)}))"
        )
        assert "violations" in found, found
        assert found["passes"], "axe found nothing to look at"
        return [
            f"{v['impact']} {v['id']}: {[n['html'][:200] for n in v['nodes'][:3]]}"
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
        ]

    def screenshot(self, path: Path) -> Path:
        """The whole page as a picture."""
        width, height = self.run("const d = document.documentElement; return [d.clientWidth, d.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def quit(self) -> None:
        self.driver.quit()


SHOWN = """
const [k] = arguments;
const exact = (name) => { const x = document.getElementById(`${name}-${k}`).dataset.exact; return x ? JSON.parse(x) : null; };
return {
  value: exact("value"), range: exact("range"), price: exact("price"), ceiling: exact("ceiling"), floor: exact("floor"),
  text: document.getElementById(`value-${k}`).textContent, how: document.getElementById(`how-${k}`).textContent,
  spoken: document.getElementById(`slider-${k}`).getAttribute("aria-valuetext"),
  position: Number(document.getElementById(`slider-${k}`).value),
  mixture: [...document.querySelectorAll(`#mixture-${k} .share`)].map(
    (row) => [Number(row.dataset.member), JSON.parse(row.dataset.weight)]),
};
"""
SLIDE = "const s = document.getElementById(`slider-${arguments[0]}`); s.value = arguments[1]; s.dispatchEvent(new Event('input'))"
TYPE = "const s = document.getElementById(`exact-${arguments[0]}`); s.value = arguments[1]; s.dispatchEvent(new Event('input'))"

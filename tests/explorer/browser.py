"""A browser driven over the WebDriver protocol, by nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-prefers-reduced-motion",
    "--force-device-scale-factor=1",
)
PATIENCE = 300.0
"""Seconds after which something that should happen counts as not happening; no test times it."""

KEYS = {
    "Enter": "\ue007", "Escape": "\ue00c", "Right": "\ue014", "Left": "\ue012", "Up": "\ue013",
    "Down": "\ue015", "Backspace": "\ue003", "Tab": "\ue004",
}  # fmt: skip


def missing() -> str:
    """What is missing to start a browser; empty when nothing is."""
    if not shutil.which("chromedriver"):
        return "chromedriver is not installed (Debian: apt-get install chromium-driver)"
    if not any(map(shutil.which, BROWSERS)):
        return "no chromium is installed (Debian: apt-get install chromium)"
    return ""


def patiently(test: Callable[[], Any], what: str) -> Any:
    """Wait until a test returns something true, and return that."""
    end = time.monotonic() + PATIENCE
    while not (found := test()):
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for: {what}"
        time.sleep(0.05)
    return found


class BrowserError(RuntimeError):
    """The browser refused a command."""


class Browser:
    """One window of a headless chromium."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 800) -> None:
        self.folder = folder
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(
            [str(shutil.which("chromedriver")), f"--port={port}", "--allowed-ips=127.0.0.1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.address = f"http://127.0.0.1:{port}"
        self.session = ""
        try:
            self._start(width, height)
        except BaseException:
            self.close()
            raise

    def _start(self, width: int, height: int) -> None:
        program = next(path for path in map(shutil.which, BROWSERS) if path)
        profile = self.folder / "profile"
        options = {
            "binary": program,
            "args": [*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={profile}"],
            "prefs": {"download.default_directory": str(self.downloads)},
        }
        wanted = {
            "alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        }
        patiently(self._is_ready, "chromedriver is ready")
        found = self._call("POST", "/session", {"capabilities": wanted})
        self.session = f"/session/{found['sessionId']}"
        limit = round(1000 * PATIENCE)
        self._call("POST", f"{self.session}/timeouts", {"script": limit, "pageLoad": limit})

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._call("GET", "/status")["ready"])
        return False

    def close(self) -> None:
        if self.session:
            with contextlib.suppress(OSError, BrowserError):
                self._call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait(PATIENCE)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise BrowserError(json.load(error)["value"]["message"]) from None

    # What a person does -------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        self._call("POST", f"{self.session}/url", {"url": path.resolve().as_uri()})
        self.settle()

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a function in the page and return what it returns."""
        body = {"script": script, "args": list(arguments)}
        return self._call("POST", f"{self.session}/execute/sync", body)

    def wait(self, script: str, *arguments: Any) -> Any:
        """Wait until the body of a function in the page returns something true; return that."""
        return patiently(lambda: self.run(script, *arguments), script)

    def settle(self) -> None:
        """Wait until the page has drawn; motion is reduced, so there are no animations."""
        script = (
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )
        self._call("POST", f"{self.session}/execute/async", {"script": script, "args": []})

    def resize(self, width: int, height: int) -> None:
        self._call("POST", f"{self.session}/window/rect", {"width": width, "height": height})
        # The page hears of the new size in its own time.
        self.wait(
            """
            const { view } = window.latentreeExplorer;
            const box = view.canvas.getBoundingClientRect();
            return outerWidth === arguments[0] && view.width === box.width;
            """,
            width,
        )
        self.settle()

    @contextlib.contextmanager
    def screen(self, width: int, height: int, *, phone: bool = False) -> Iterator[None]:
        """Show pages on a screen of so many pixels for a while; a phone has fingers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self._devtools("Emulation.setDeviceMetricsOverride", **metrics)
        self._devtools("Emulation.setTouchEmulationEnabled", enabled=phone)
        try:
            yield
        finally:
            self._devtools("Emulation.setTouchEmulationEnabled", enabled=False)
            self._devtools("Emulation.clearDeviceMetricsOverride")

    def _devtools(self, command: str, **parameters: Any) -> Any:
        body = {"cmd": command, "params": parameters}
        return self._call("POST", f"{self.session}/goog/cdp/execute", body)

    def pointer(self, *actions: dict[str, Any], kind: str = "mouse") -> None:
        source = {
            "type": "pointer",
            "id": kind,
            "parameters": {"pointerType": kind},
            "actions": list(actions),
        }
        self._call("POST", f"{self.session}/actions", {"actions": [source]})

    def click(self, x: float, y: float, times: int = 1, kind: str = "mouse") -> None:
        move = {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.pointer(move, *(press * times), kind=kind)
        self.settle()

    def double_click(self, x: float, y: float, script: str) -> None:
        """Click twice until a script returns true: two clicks far apart in time are no pair."""

        def tried() -> bool:
            self.click(x, y, times=2)
            return bool(self.run(script))

        patiently(tried, script)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        def to(point: tuple[float, float]) -> dict[str, Any]:
            return {
                "type": "pointerMove",
                "x": round(point[0]),
                "y": round(point[1]),
                "duration": 30,
            }

        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self.pointer(to(start), down, to(end), up)
        self.settle()

    def pinch(self, middle: tuple[float, float], start: int, end: int) -> None:
        """Move two fingers from ``start`` to ``end`` pixels left and right of a point."""
        x, y = middle

        def finger(name: str, side: int) -> dict[str, Any]:
            def to(reach: int, duration: int) -> dict[str, Any]:
                place = {"x": round(x + side * reach), "y": round(y)}
                return {"type": "pointerMove", "duration": duration, **place}

            down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
            actions = [to(start, 0), down, to(end, 60), up]
            touch = {"pointerType": "touch"}
            return {"type": "pointer", "id": name, "parameters": touch, "actions": actions}

        fingers = [finger("left", -1), finger("right", 1)]
        self._call("POST", f"{self.session}/actions", {"actions": fingers})
        self.settle()

    def wheel(self, x: float, y: float, delta: int) -> None:
        action = {
            "type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta,
            "duration": 0, "origin": "viewport",
        }  # fmt: skip
        source = {"type": "wheel", "id": "wheel", "actions": [action]}
        self._call("POST", f"{self.session}/actions", {"actions": [source]})
        self.settle()

    def type(self, *keys: str) -> None:
        """Press keys by name ("Enter"), or type text."""
        letters = [key for text in keys for key in ([KEYS[text]] if text in KEYS else text)]
        actions = [
            {"type": way, "value": letter} for letter in letters for way in ("keyDown", "keyUp")
        ]
        source = {"type": "key", "id": "keys", "actions": actions}
        self._call("POST", f"{self.session}/actions", {"actions": [source]})
        self.settle()

    def click_on(self, selector: str, text: str | None = None) -> None:
        """Click the first element that fits a selector (and whose text holds some text)."""
        found = self.run(
            """
            const [selector, text] = arguments;
            const fits = (e) => text === null || e.textContent.includes(text);
            const element = [...document.querySelectorAll(selector)].find(fits);
            if (!element) return null;
            element.scrollIntoView({ block: "center" });
            const box = element.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
            """,
            selector,
            text,
        )
        assert found is not None, f"nothing fits {selector!r} with text {text!r}"
        self.click(*found)

    # What a person sees -------------------------------------------------------------------------

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", f"{self.session}/screenshot")))

    def errors(self) -> list[str]:
        """Messages of the console since the last call: errors and refusals of the policy."""
        entries = self._call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

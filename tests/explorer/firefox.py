"""Firefox driven over WebDriver BiDi, by nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

from tests.explorer.browser import PATIENCE, BrowserError, patiently

PROGRAMS = ("firefox", "firefox-esr")
OPCODE_TEXT, OPCODE_CLOSE, OPCODE_PING = 1, 8, 9


def missing() -> str:
    """What is missing to start Firefox; empty when nothing is."""
    if not any(map(shutil.which, PROGRAMS)):
        return "firefox is not installed (Debian: apt-get install firefox-esr)"
    return ""


class _Socket:
    """A WebSocket that sends and receives whole texts (RFC 6455)."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.socket = socket.create_connection((host, port), PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket",
            "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
        ]  # fmt: skip
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._read(1)
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            raise BrowserError(answer.decode())

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise BrowserError("the browser closed the connection")
            data += more
        return data

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        long = b"" if size < 126 else struct.pack("!H" if size < 65536 else "!Q", size)
        short = size if size < 126 else 126 if size < 65536 else 127
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | OPCODE_TEXT, 0x80 | short]) + long + mask + masked)

    def receive(self) -> str:
        text = b""
        while True:
            first, second = self._read(2)
            size = second & 127
            if size > 125:
                how, count = ("!H", 2) if size == 126 else ("!Q", 8)
                size = struct.unpack(how, self._read(count))[0]
            data = self._read(size)
            if first & 15 == OPCODE_CLOSE:
                raise BrowserError("the browser closed the connection")
            if first & 15 == OPCODE_PING:
                continue
            text += data
            if first & 0x80:
                return text.decode()


class Firefox:
    """One window of a headless Firefox."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 800) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "user.js").write_text(
            'user_pref("ui.prefersReducedMotion", 1);\n'
            'user_pref("browser.shell.checkDefaultBrowser", false);\n'
            'user_pref("remote.active-protocols", 1);\n',
            "utf-8",
        )
        self.log = folder / "log.txt"
        program = next(path for path in map(shutil.which, PROGRAMS) if path)
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [program, "--headless", "--no-remote", "--profile",
                 str(folder), "--remote-debugging-port", "0", "--width", str(width), "--height",
                 str(height)],
                stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.number = 0
        self.socket: _Socket | None = None
        self.messages: list[str] = []
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        found = patiently(
            lambda: re.search(r"ws://([\d.]+|localhost):(\d+)", self.log.read_text("utf-8")),
            "Firefox listens",
        )
        self.socket = _Socket(found[1], int(found[2]), "/session")
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def close(self) -> None:
        if self.socket is not None:
            self.socket.socket.close()
        self.process.terminate()
        self.process.wait(PATIENCE)

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; messages of the console are kept."""
        assert self.socket is not None
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.messages.append(answer["params"]["text"])
            if answer.get("id") == self.number:
                if answer["type"] == "error":
                    raise BrowserError(answer["message"])
                return answer["result"]

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=self.context, viewport=size)

    def open(self, path: Path, hash_: str = "") -> None:
        address = path.resolve().as_uri() + (f"#{hash_}" if hash_ else "")
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")
        self.run("await new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")

    def run(self, script: str) -> Any:
        """Run the body of an async function and return what it returns, by way of JSON."""
        wrapped = f"(async () => JSON.stringify((await (async () => {{ {script} }})()) ?? null))()"
        found = self.call(
            "script.evaluate", expression=wrapped, target={"context": self.context},
            awaitPromise=True, userActivation=True,
        )  # fmt: skip
        if found["type"] == "exception":
            raise BrowserError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def screenshot(self, path: Path) -> None:
        found = self.call("browsingContext.captureScreenshot", context=self.context)
        path.write_bytes(base64.b64decode(found["data"]))

    def errors(self) -> list[str]:
        """Errors of the console since the last call."""
        found, self.messages = self.messages, []
        return found

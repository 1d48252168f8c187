"""A real browser without a window, asked by the Chrome DevTools Protocol what a page shows."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="SKIPPED browser: `tools/deps browser` installs Chromium")

DESKTOP, PHONE = (1280, 800), (390, 844)

PATIENCE = 300
"""Longer than the first answer of a browser takes on a busy machine, s: that was once more than a minute."""


class Page:
    """A page that is shown."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket, self.asked, self.errors = socket, 0, []  # type: ignore[var-annotated]
        self.requests: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.asked += 1
        await self.socket.write_message(json.dumps({"id": self.asked, "method": method, "params": parameters}))
        while True:
            message = json.loads(await asyncio.wait_for(self.socket.read_message(), PATIENCE))  # type: ignore[arg-type]
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            if message.get("id") == self.asked:
                assert "error" not in message, message
                return message["result"]

    async def value(self, expression: str) -> Any:
        """What the JavaScript ``expression`` is; a promise is waited for."""
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression: str) -> None:
        for _ in range(200):
            if await self.value(expression):
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(expression)

    async def screenshot(self, file: Path) -> None:
        shot = await self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    async def move(self, x: float, y: float) -> None:
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        await self.move(*start)
        button = {"button": "left", "clickCount": 1}
        await self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **button)
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=end[0], y=end[1], button="left", buttons=1)
        await self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **button)


@asynccontextmanager
async def shown(file: Path, size: tuple[int, int], mobile: bool = False) -> AsyncIterator[Page]:
    """The page ``file`` in a window of ``size`` pixels, without a network."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}")
        assert CHROMIUM is not None
        with subprocess.Popen([CHROMIUM, *options, "about:blank"], stderr=subprocess.PIPE, text=True) as browser:
            try:
                assert browser.stderr is not None
                address = next(line for line in browser.stderr if "DevTools listening" in line).split()[-1]
                port = address.split(":")[2].split("/")[0]
                tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
                tab = next(tab for tab in tabs if tab["type"] == "page")
                page = Page(await websocket_connect(tab["webSocketDebuggerUrl"], max_message_size=1 << 28))
                for domain in ("Runtime", "Page", "Network"):
                    await page.call(f"{domain}.enable")
                await page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
                width, height = size
                await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
                await page.call("Page.navigate", url=file.resolve().as_uri())
                await page.until("document.readyState === 'complete'")
                yield page
            finally:
                browser.terminate()

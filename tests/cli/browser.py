# SPDX-License-Identifier: MIT
"""A page in headless Chromium, driven over a pipe by the DevTools protocol. No
name is resolved, so that a request of a page would fail and be seen.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Seconds until an answer that does not come is a failure.
HANG = 120
WORDS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
         "--remote-debugging-pipe"]


class Browser:
    """One page. Close it, or use it as a context."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        ours, self.writes = os.pipe()
        self.reads, theirs = os.pipe()
        # Chromium reads from 3 and writes to 4.
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec 3<&%d 4>&%d; exec "$@"' % (ours, theirs), "sh",
             CHROMIUM, *WORDS, "--user-data-dir=" + self.folder.name,
             "about:blank"], pass_fds=(ours, theirs),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(ours)
        os.close(theirs)
        self.text, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.loaded = [], [], 0
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target,
                                flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.ask(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.writes)
        os.close(self.reads)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Its children may still write there for a moment.
        shutil.rmtree(self.folder.name, ignore_errors=True)
        self.folder._finalizer.detach()

    def receive(self, end):
        """The next message of the browser."""
        while b"\0" not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.reads], [], [], left)[0]:
                raise TimeoutError("no answer from Chromium")
            more = os.read(self.reads, 1 << 16)
            if not more:
                raise EOFError("Chromium ended")
            self.text += more
        message, self.text = self.text.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        """Records an event."""
        method, values = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded += 1
        elif method == "Runtime.exceptionThrown":
            self.errors.append(values["exceptionDetails"])
        elif method == "Log.entryAdded":
            self.errors.append(values["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def ask(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + HANG
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + str(answer["error"]))
                return answer["result"]
            self.note(answer)

    def open(self, path, width=1400, height=900, dark=False, script=True):
        """Loads a file and waits until it has loaded."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)
        self.errors, self.requests, before = [], [], self.loaded
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.monotonic() + HANG
        while self.loaded == before:
            self.note(self.receive(end))

    def value(self, expression):
        """The value of a JavaScript expression, or of its promise."""
        answer = self.ask("Runtime.evaluate", expression=expression,
                          returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def point(self, selector, kind="mouseMoved", **more):
        """Moves the pointer to the middle of an element."""
        x, y = self.value(
            "(() => { const e = document.querySelector(%s);"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
            % json.dumps(selector))
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        for kind in "mousePressed", "mouseReleased":
            self.point(selector, kind, button="left", clickCount=1)

    def picture(self, path, selector=None, whole=False):
        """Writes a PNG of an element, of the whole page or of the window."""
        more = {}
        if selector or whole:
            box = self.value(
                "(() => { const b = document.querySelector(%s)"
                ".getBoundingClientRect(); return {x: b.x + scrollX, y: b.y + "
                "scrollY, width: b.width, height: b.height, scale: 1}; })()"
                % json.dumps(selector or "html"))
            more = {"clip": box, "captureBeyondViewport": True}
        answer = self.ask("Page.captureScreenshot", **more)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

"""Debian's Chromium without a screen, driven through a pipe (Chrome DevTools Protocol)."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    """A browser with one page. `before` is put before its command, such as `ip netns exec`."""

    def __init__(self, before=()):
        program = shutil.which("chromium") or sys.exit("browser: there is no chromium: `apt-get install chromium`")
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self.write_end = os.pipe()
        self.read_end, write = os.pipe()
        # The program reads commands from descriptor 3, and writes to 4.
        command = [*before, "bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "bash", program, "--headless=new", "--no-sandbox",
                   "--disable-gpu", "--disable-background-networking", "--no-first-run", "--window-size=1280,900",
                   "--remote-debugging-pipe", f"--user-data-dir={self.home.name}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(read, write), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.number, self.rest, self.session = 0, b"", None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.home.cleanup()

    def call(self, method, **values):
        """Sends a command, and returns its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.read_end, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self.rest += got
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def ask(self, script):
        """Returns the value of an expression of the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def picture(self, file):
        """Keeps a picture of the page."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def wait(self, script, seconds=30):
        """Waits until an expression is true, and returns it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = self.ask(script)
            if value:
                return value
            time.sleep(0.1)
        raise RuntimeError(f"not within {seconds} s: {script}")

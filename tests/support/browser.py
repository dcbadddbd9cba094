"""Headless Chromium, driven over its debugging pipe: no library, no port. For tests and for the pictures of the docs."""
import base64
import json
import os
import shutil
import subprocess
import time

PATIENCE = 120  # seconds; nothing takes that long unless something is broken
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
         "--force-color-profile=srgb", "--remote-debugging-pipe"]
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, "Tab": 9, "/": 191}


class Broken(Exception):
    pass


class Browser:
    """One page. Collects what must not happen: errors on the console, dialogs, requests to other hosts."""

    def __init__(self, profile):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not program:
            raise Broken("no Chromium; Debian's package is chromium")
        theirs_in, self.writing = os.pipe()
        self.reading, theirs_out = os.pipe()
        line = 'exec "$@" 3<&%d 4>&%d' % (theirs_in, theirs_out)
        self.process = subprocess.Popen(["sh", "-c", line, "sh", program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
                                        pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.session = 0, b"", None
        self.complaints, self.dialogs, self.requests = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, Broken):
            pass
        os.close(self.writing)
        os.close(self.reading)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Broken(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def next_message(self):
        while b"\0" not in self.rest:
            more = os.read(self.reading, 1 << 16)
            if not more:
                raise Broken("Chromium has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        method, told = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"] + " " + told["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(told["message"])
            self.call("Page.handleJavaScriptDialog", accept=False)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def run(self, expression):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Broken(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression, what=""):
        end = time.monotonic() + PATIENCE
        while not (value := self.run(expression)):
            if time.monotonic() > end:
                raise Broken(f"not so: {what or expression}; the page says: {self.run('document.body.innerText')[:2000]}")
            time.sleep(0.05)
        return value

    def place_of(self, selector):
        """The centre of a visible element that nothing covers."""
        return self.wait(f"""(() => {{
          const node = document.querySelector({json.dumps(selector)});
          if (!node) return null;
          node.scrollIntoView({{block: "nearest"}});
          const box = node.getBoundingClientRect();
          const place = [box.x + box.width / 2, box.y + box.height / 2];
          return box.width && box.height && node.contains(document.elementFromPoint(...place)) ? place : null;
        }})()""", f"{selector} can be seen")

    def click(self, selector):
        x, y = self.place_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key):
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        if key in ("Enter", "/"):
            code["text"] = "\r" if key == "Enter" else "/"
        self.call("Input.dispatchKeyEvent", type="keyDown", **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def resize(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

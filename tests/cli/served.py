"""A `holdfast serve` in a folder of its own, and holders to look at."""
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("HOLDFAST_PROGRAM", str(ROOT / "build" / "holdfast"))
PATIENCE = 120  # seconds


class Served:
    def __init__(self, folder, *options, urls=()):
        self.folder = pathlib.Path(folder)
        self.environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.children = []
        self.url = urls[-1] if urls else f"sqlite:{self.folder}/locks.db"
        log = self.folder / "serve.log"
        named = [word for url in urls or [self.url] for word in ("--url", url)]
        self.url = self.url.split("=", 1)[1] if re.match(r"^[\w.-]+=", self.url) else self.url
        self.server = self.start([*named, "serve", "--listen", "127.0.0.1:0", *options], log)
        self.address = self.wait(lambda: re.search(r"http://\S+", log.read_text()), "serving").group(0)

    def start(self, words, log):
        child = subprocess.Popen([PROGRAM, *words], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=open(log, "w"))
        self.children.append(child)
        return child

    def hold(self, *words):
        """run or elect with these words; holds until it is ended."""
        return self.start(["--url", self.url, *words, "--", "sleep", "1000"], self.folder / f"holder-{len(self.children)}.log")

    @staticmethod
    def wait(condition, what):
        end = time.monotonic() + PATIENCE
        while not (value := condition()):
            if time.monotonic() > end:
                raise SystemExit(f"not so: {what}")
            time.sleep(0.02)
        return value

    def memory(self):
        """Resident kilobytes of the server."""
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.server.pid}/status").read_text()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
        for child in self.children:
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

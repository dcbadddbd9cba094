"""A Prometheus of Debian's scrapes `holdfast serve` with the alert rules that are shipped, and its numbers are what the
test did.

Broken: an operator's Prometheus refuses the metrics, or shows what is not so."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent)]
from served import ROOT, Served  # noqa: E402

RULES = ROOT / "packaging" / "prometheus" / "alerts.yml"
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: locks
    static_configs: [{{targets: ["{target}"]}}]
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """In a folder of its own, on a free loopback port, ended with this process."""

    def __init__(self, folder, target):
        self.folder = pathlib.Path(folder)
        (self.folder / "prometheus.yml").write_text(CONFIGURATION.format(target=target))
        shutil.copy(RULES, self.folder)
        for _ in range(5):  # somebody may take the port before it listens
            self.launch()
            Served.wait(lambda: self.process.poll() is not None or self.ready(), "Prometheus answers or has ended")
            if self.process.poll() is None:
                return
        raise SystemExit("Prometheus does not start: " + (self.folder / "prometheus.log").read_text())

    def launch(self):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        with open(self.folder / "prometheus.log", "w") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={self.folder}/prometheus.yml",
                 f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ready(self):
        try:
            with urllib.request.urlopen(self.address + "/-/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path, **words):
        with urllib.request.urlopen(f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=60) as answer:
            return json.load(answer)["data"]

    def value(self, query):
        """The only value of the query; None if there is none."""
        found = self.get("query", query=query)["result"]
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def shows(self, query, value):
        Served.wait(lambda: self.value(query) == value, f"{query} is {value}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def is_up(prometheus):
    targets = prometheus.get("targets")["activeTargets"]
    return [target["health"] for target in targets] == ["up"]


def rules_work(prometheus):
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    return len(rules) == RULES.read_text().count("- alert:") and all(rule["health"] == "ok" for rule in rules)


def main():
    with tempfile.TemporaryDirectory() as folder, Served(folder) as served, \
            Prometheus(folder, served.address.split("//")[1].rstrip("/")) as prometheus:
        served.wait(lambda: is_up(prometheus), "the target is up")
        prometheus.shows("holdfast_engine_up", 1)
        prometheus.shows("holdfast_engine_held", 0)
        first = served.hold("run", "nightly")
        prometheus.shows("holdfast_engine_held", 1)
        second = served.hold("run", "nightly")
        prometheus.shows("holdfast_engine_waiting", 1)
        first.terminate()
        prometheus.shows("holdfast_engine_waiting", 0)
        prometheus.shows("holdfast_engine_held", 1)
        prometheus.shows('holdfast_engine_events_total{event="granted"}', 2)
        second.terminate()
        prometheus.shows("holdfast_engine_held", 0)
        prometheus.shows('holdfast_engine_events_total{event="released"}', 2)
        served.wait(lambda: rules_work(prometheus), "the alert rules are evaluated")
        prometheus.shows("count(ALERTS) or vector(0)", 0)
        served.server.terminate()
        prometheus.shows("up", 0)
        assert served.server.wait(60) is not None


if __name__ == "__main__":
    main()

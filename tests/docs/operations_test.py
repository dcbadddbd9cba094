"""What is shipped for operators is accepted by their own tools: promtool, systemd-analyze."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = SOURCE / "packaging"
PROGRAM = pathlib.Path(os.environ["HOLDFAST_PROGRAM"])
METRIC = re.compile(r"\b(?:holdfast_[a-z_]+|leader_election_master_status)\b")


def run(*words, **how):
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **how)


def example():
    """The text that the example prints."""
    made = run(PROGRAM.parent / "examples" / "example_metrics")
    assert made.returncode == 0, made.stderr
    return made.stdout


def families(text):
    """The names of its metrics, as queries have them."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        names |= {name + part for part in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


class metrics(unittest.TestCase):
    def test_promtool_accepts_the_text(self):
        checked = run("promtool", "check", "metrics", input=example())
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_the_numbers_are_those_of_the_example(self):
        text = example()
        of = 'engine="memory",primitive="mutex"'
        for line in (f'holdfast_acquisitions_total{{{of},result="granted"}} 4', f'holdfast_acquisitions_total{{{of},result="busy"}} 1',
                     f"holdfast_held{{{of}}} 1", f"holdfast_hold_seconds_count{{{of}}} 3", 'holdfast_engine_up{engine="memory"} 1',
                     'leader_election_master_status{name="scheduler"} 1'):
            self.assertIn(line + "\n", text)

    def test_the_page_lists_every_metric_and_no_other(self):
        page = (SOURCE / "docs" / "metrics.md").read_text()
        listed = set(re.findall(r"^\| `((?:holdfast|leader)_[a-z_]+)` \|", page, re.M))
        self.assertEqual(listed, set(re.findall(r"^# TYPE (\S+)", example(), re.M)))


class alerts(unittest.TestCase):
    FILE = PACKAGING / "prometheus" / "alerts.yml"

    def test_promtool_accepts_the_rules(self):
        checked = run("promtool", "check", "rules", self.FILE)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_they_ask_for_metrics_that_exist(self):
        asked = {name for line in re.findall(r"expr:.*?(?=\n +(?:for|labels):)", self.FILE.read_text(), re.S) for name in METRIC.findall(line)}
        self.assertTrue(asked)
        self.assertLessEqual(asked, families(example()))

    def test_the_page_lists_every_alert(self):
        names = re.findall(r"- alert: (\w+)", self.FILE.read_text())
        self.assertEqual(re.findall(r"^\| `(Holdfast\w+)`", (SOURCE / "docs" / "metrics.md").read_text(), re.M), names)

    def test_they_fire_when_they_should_and_else_not(self):
        """Prometheus' own test of rules: an engine that is down, a lost lease, no leader."""
        down = 'holdfast_engine_up{engine="redis",instance="a",job="shop"}'
        lost = 'holdfast_lost_total{engine="redis",primitive="mutex",cause="unconfirmed",instance="a",job="shop"}'
        leads = 'leader_election_master_status{name="scheduler",instance="%s",job="shop"}'

        def case(series, alert, at, fires):
            labels = [{"exp_labels": fires}] if fires else []
            return {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series],
                    "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": labels}]}
        tests = [
            case([(down, "0x10")], "HoldfastEngineDown", "5m", {"severity": "critical", "engine": "redis", "instance": "a", "job": "shop"}),
            case([(down, "1x10")], "HoldfastEngineDown", "5m", None),
            case([(lost, "0 0 0 1x10")], "HoldfastLeaseLost", "5m",
                 {"severity": "warning", "engine": "redis", "instance": "a", "job": "shop", "cause": "unconfirmed"}),
            case([(lost, "3x10")], "HoldfastLeaseLost", "5m", None),
            case([(leads % "a", "0x10"), (leads % "b", "0x10")], "HoldfastNoLeader", "5m", {"severity": "critical", "name": "scheduler", "job": "shop"}),
            case([(leads % "a", "0x10"), (leads % "b", "1x10")], "HoldfastNoLeader", "5m", None),
        ]
        rules = re.sub(r"\n +annotations:\n(?: {10,}.*\n)+", "\n", self.FILE.read_text())  # they are not compared
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rules.yml").write_text(rules)
            file = pathlib.Path(folder) / "test.yml"
            file.write_text(json.dumps({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}))
            checked = run("promtool", "test", "rules", file)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class dashboard(unittest.TestCase):
    def test_it_asks_for_metrics_that_exist(self):
        board = json.loads((PACKAGING / "grafana" / "holdfast.json").read_text())
        asked = {name for panel in board["panels"] for target in panel["targets"] for name in METRIC.findall(target["expr"])}
        self.assertLessEqual(asked, families(example()))
        self.assertGreaterEqual(len(asked), 10)

    def test_its_panels_do_not_overlap(self):
        board = json.loads((PACKAGING / "grafana" / "holdfast.json").read_text())
        taken = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(taken & cells, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24)
            taken |= cells


class units(unittest.TestCase):
    def test_systemd_accepts_them(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for unit in sorted((PACKAGING / "systemd").iterdir()):
                # The path is where this build put the program.
                file = pathlib.Path(folder) / unit.name
                file.write_text(unit.read_text().replace("/usr/bin/holdfast", str(PROGRAM)))
                files.append(file)
            self.assertGreaterEqual(len(files), 3)
            checked = run("systemd-analyze", "verify", "--man=no", *files)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_their_commands_are_understood(self):
        """What is wrong with a command line is exit 2; here the engine is what cannot be reached, which ends all but serve."""
        without_engine = dict(os.environ, HOLDFAST_URL="redis://127.0.0.1:1")
        for unit in (PACKAGING / "systemd").glob("*.service"):
            line = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M).group(1)
            words = re.sub(r"127.0.0.1:\d+", "127.0.0.1:0", line).split()
            if words[1] != "serve":
                tried = run(PROGRAM, *words[1:], env=without_engine)
                self.assertEqual(tried.returncode, 122, (line, tried.stderr))
                continue
            with subprocess.Popen([PROGRAM, *words[1:]], env=without_engine, stderr=subprocess.PIPE, text=True) as served:
                said = served.stderr.readline()
                served.terminate()
            self.assertIn("serving redis at http://127.0.0.1:", said)


if __name__ == "__main__":
    unittest.main()

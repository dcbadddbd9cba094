"""Where and with what it was measured. No name of a host, no path."""
import json
import os
import platform
import re
import subprocess


def load():
    return round(os.getloadavg()[0], 1)


def describe():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
    with open("/etc/os-release", encoding="utf-8") as file:
        system = re.search(r'PRETTY_NAME="(.*)"', file.read())
    return {"cores": os.cpu_count(), "processor": model[1] if model else platform.machine(),
            "memory_gib": round(memory / 2**20), "system": system[1] if system else platform.system(),
            "note": "a virtual machine; servers, holdfast and its peers on the same cores"}


def first_match(command, pattern):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def versions(here, build):
    """Of what took part, as far as it is there."""
    pom = (here / "java/pom.xml").read_text()
    modules = (here / "go/go.mod").read_text()
    packages = json.loads((here / "node/package.json").read_text())["dependencies"]
    found = {
        "holdfast": first_match([str(build / "holdfast"), "--version"], r"holdfast (\S+)"),
        "redis-server": first_match(["redis-server", "--version"], r"v=(\S+)"),
        "java": first_match(["java", "-version"], r'version "([^"]+)"'),
        "go": first_match(["go", "version"], r"go(\d\S+)"),
        "node": first_match(["node", "--version"], r"v(\S+)"),
        "zookeeper": first_match(["dpkg-query", "-W", "-f=${Version}", "zookeeper"], r"(.+)"),
        "postgresql": first_match(["dpkg-query", "-W", "-f=${Version}", "postgresql"], r"(.+)"),
        "etcd": first_match(["etcd", "--version"], r"etcd Version: (\S+)"),
        "etcd client": re.search(r"client/v3 v(\S+)", modules)[1],
        "redisson": re.search(r"<redisson.version>([^<]+)", pom)[1],
        "curator": re.search(r"curator-recipes</artifactId>\s*<version>([^<]+)", pom)[1],
        "redsync": re.search(r"redsync/v4 v(\S+)", modules)[1],
        "node-redlock": packages["redlock"],
        "redis-py": (here / "python/requirements.txt").read_text().strip().split("==")[1],
    }
    return {name: version for name, version in found.items() if version}

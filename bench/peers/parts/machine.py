"""Where and with what it was measured. Contains no host name and no path."""
import os
import pathlib
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
            "note": "servers, holdfast and its peers on the same cores"}


def first_match(command, pattern):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def versions(build):
    """Versions of the installed servers and languages."""
    found = {
        "holdfast": first_match([str(build / "holdfast"), "--version"], r"holdfast (\S+)"),
        "redis-server": first_match(["redis-server", "--version"], r"v=(\S+)"),
        "zookeeper": first_match(["dpkg-query", "-W", "-f=${Version}", "zookeeper"], r"(.+)"),
        "etcd": first_match(["etcd", "--version"], r"etcd Version: (\S+)"),
        "postgresql": first_match(["dpkg-query", "-W", "-f=${Version}", "postgresql"], r"(.+)"),
        "mariadb": first_match(["mariadbd", "--version"], r"Ver ([\d.]+)"),
        "java": first_match(["java", "-version"], r'version "([^"]+)"'),
        "go": first_match(["go", "version"], r"go(\d\S+)"),
        "node": first_match(["node", "--version"], r"v(\S+)"),
        "python": platform.python_version(),
        "flock": first_match(["flock", "--version"], r"util-linux (\S+)"),
    }
    return {name: version for name, version in found.items() if version}


def family(*pids):
    """The processes and their descendants that are still running: {pid: fields of its stat}."""
    parents, stats = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = pathlib.Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        stats[int(name)] = fields
    found = {}
    for one, fields in stats.items():
        at = one
        while at > 1 and at not in pids:
            at = parents.get(at, 0)
        if at in pids:
            found[one] = fields
    return found


def processor_time(*pids):
    """Microseconds, including descendants; 0 for None."""
    if pids == (None,):
        return 0
    ticks = sum(int(field) for fields in family(*pids).values() for field in fields[11:15])
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Resident bytes, including descendants; shared memory counts once."""
    total = 0
    for one in family(pid) if pid is not None else ():
        try:
            text = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) * 1024
    return total

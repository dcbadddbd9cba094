"""The examples do what they say."""
import pathlib
import subprocess
import sys

import pytest

import servers

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
pytestmark = pytest.mark.once
SAYS = {"first_use": "the late writer is refused\n", "singleton_job": "the others: [None, None, None]\n",
        "worker_pool": "100 requests booked, 100 calls to the partner\n"}


def test_every_example_has_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(url, name):
    said = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", url], capture_output=True, text=True,
                          timeout=servers.LIMIT)
    assert said.returncode == 0, said.stderr
    assert said.stdout.endswith(SAYS[name])

import os
import uuid

import pytest

import holdfast
import servers


def pytest_addoption(parser):
    parser.addoption("--engine", default="sqlite", choices=servers.ENGINES)


def pytest_configure(config):
    config.addinivalue_line("markers", "once: shows the package, not an engine: on sqlite alone, unless HOLDFAST_LONG is set")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--engine") == "sqlite" or "HOLDFAST_LONG" in os.environ:
        return
    once = [item for item in items if item.get_closest_marker("once")]
    config.hook.pytest_deselected(items=once)
    items[:] = [item for item in items if item not in once]


@pytest.fixture(scope="session")
def url(request):
    """The URL of the engine that is tested."""
    with servers.ENGINES[request.config.getoption("--engine")]() as made:
        yield made


@pytest.fixture
def client(url):
    made = holdfast.connect(url)
    yield made
    made.close()


@pytest.fixture
def other(url):
    """Another client, as of another process: nothing is handed over inside it."""
    made = holdfast.connect(url)
    yield made
    made.close()


@pytest.fixture
def name():
    """A name that no other test has."""
    return f"test/{uuid.uuid4()}"

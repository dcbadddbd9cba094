"""The blocks of docs/python.md, run in order in one program. Broken: a reader types what does not work."""
import asyncio
import os
import pathlib
import re

import pytest

import holdfast

pytestmark = pytest.mark.once
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_blocks_of_the_page_run(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 6
    done = []

    async def work(request):
        done.append(request)
    names = {"order": "order 1", "write": lambda order, fence: done.append(order), "sell": lambda: done.append("sold"),
             "too_busy": lambda: done.append("busy"), "work": work}
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        for block in blocks:
            exec(block, names)
    finally:
        os.chdir(before)
    asyncio.run(names["handle"]("request"))
    assert done == ["order 1", "sold", "sold", "request"]
    assert isinstance(names["client"], holdfast.Client)
    names["client"].close()


def test_the_page_lists_every_exception():
    text = PAGE.read_text()
    kinds = [each for each in holdfast.__all__ if isinstance(getattr(holdfast, each), type)
             and issubclass(getattr(holdfast, each), holdfast.Error)]
    assert [each for each in kinds if each not in text] == []

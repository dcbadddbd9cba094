"""The judge of python/torture/run sees what it must see. Broken: the torture passes whatever happens."""
import importlib.machinery
import importlib.util
import pathlib

import pytest

pytestmark = pytest.mark.once
PATH = pathlib.Path(__file__).resolve().parents[1] / "torture" / "run"
loader = importlib.machinery.SourceFileLoader("torture_run", str(PATH))
torture = importlib.util.module_from_spec(importlib.util.spec_from_loader("torture_run", loader))
loader.exec_module(torture)


def found(records, told):
    return list(torture.violations([(0, records)], told))


def test_the_judge_sees_lost_and_repeated_numbers_old_fences_and_wrong_counts():
    good = [(1, 10, 1), (2, 12, 2), (3, 13, 1)]
    assert found(good, {1: ("plain", 2, 5, 0)}) == []
    assert found([(1, 10, 1), (3, 12, 1)], {}) == ["log 0: numbers are missing or there twice"]
    assert found([(1, 10, 1), (1, 12, 2)], {}) == ["log 0: numbers are missing or there twice"]
    assert found([(1, 10, 1), (2, 10, 2)], {}) == ["log 0: a fence does not grow"]
    assert found(good, {1: ("c++", 3, 0, 0)}) == ["c++ 1: 3 records counted, 2 in the logs"]
    assert found(good, {1: ("c++", 2, 0, 1)}) == ["c++ 1: 1 records were refused although the lease was valid"]

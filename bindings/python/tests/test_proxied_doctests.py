import warnings

import proxied_doctests
import pytest

# Tests that differ: what prints does so where the object is, and what a function gives that is
# called back stays where the function is, where pandas asks for an object of its own.
PRINTS = {"Series.info", "DataFrame.info"}
CALLED_BACK = {
    *("Series.sort_index", "Series.sort_values", "Series.transform"),
    *("DataFrame.sort_index", "DataFrame.sort_values", "DataFrame.transform"),
}
MODULES = {
    "fractions": 5,
    "collections": 30,
    "heapq": 1,
    "pandas.core.series": 300,
    "sklearn.linear_model._base": 5,
    "sklearn.svm._classes": 20,
    "sklearn.preprocessing._data": 30,
    "sklearn.pipeline": 10,
}


@pytest.mark.parametrize("name", MODULES)
def test_doctests_end_by_proxies_as_at_home(fresh, name):
    """And at least so many of them, so that something is compared."""
    package = name.split(".")[0]
    pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh.exec("import warnings\nwarnings.simplefilter('ignore')")
        alike, differ = proxied_doctests.compare(name, fresh)
    other = [line for line in differ if line[0] not in PRINTS | CALLED_BACK]
    assert len(other) <= alike // 100, other  # versions of packages have examples of their own
    assert alike >= MODULES[name]

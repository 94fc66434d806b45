import math

import pytest
import work

joblib = pytest.importorskip("joblib")
import extisolate.joblib  # noqa: E402


def test_parallel():
    with joblib.parallel_backend("extisolate", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(math.sqrt)(i * i) for i in range(100))
        ids = joblib.Parallel()(joblib.delayed(work.interpreter_id)() for _ in range(20))
    assert found == list(range(100))
    assert 0 not in ids


def test_functions_that_cannot_be_imported():
    found = joblib.Parallel(n_jobs=2, backend="extisolate")(
        joblib.delayed(lambda x: x + 1)(i) for i in range(10)
    )
    assert found == list(range(1, 11))


def test_errors():
    with pytest.raises(ValueError, match="second"):
        joblib.Parallel(n_jobs=2, backend="extisolate")(
            joblib.delayed(work.raise_in_chain)() for _ in range(10)
        )


def test_numbers_of_jobs():
    backend = extisolate.joblib.InterpretersBackend()
    assert backend.effective_n_jobs(3) == 3
    assert backend.effective_n_jobs(None) == 1
    assert backend.effective_n_jobs(-1) >= 1
    with pytest.raises(ValueError):
        backend.effective_n_jobs(0)


def test_grid_search_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1, 10], "kernel": ["linear", "rbf"]}
    alone = GridSearchCV(SVC(), grid).fit(x, y)
    with joblib.parallel_backend("extisolate", n_jobs=2):
        together = GridSearchCV(SVC(), grid).fit(x, y)
    assert together.best_params_ == alone.best_params_
    assert (together.cv_results_["mean_test_score"] == alone.cv_results_["mean_test_score"]).all()

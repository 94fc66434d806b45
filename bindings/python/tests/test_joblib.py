import math
import threading

import pytest
import work
from test_process import run

joblib = pytest.importorskip("joblib")
import extisolate.joblib  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_is_kept():
    yield
    extisolate.joblib.shutdown()


def ids_of(count, times=20):
    """Has so many jobs done, and tells in which interpreters."""
    tasks = [joblib.delayed(work.interpreter_slowly)() for _ in range(times)]
    return set(joblib.Parallel(n_jobs=count, backend="extisolate", batch_size=1)(tasks))


def number_of_interpreters():
    return len(extisolate.list_all())


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


def test_interpreters_are_kept():
    before = number_of_interpreters()
    first = ids_of(2)
    assert len(first) == 2
    test_errors()
    assert ids_of(2) == first
    assert number_of_interpreters() == before + 2
    extisolate.joblib.shutdown()
    assert number_of_interpreters() == before
    extisolate.joblib.shutdown()


def test_another_number_of_jobs():
    before = number_of_interpreters()
    two = ids_of(2)
    three = ids_of(3, 40)
    assert len(three) == 3 and not two & three
    assert number_of_interpreters() == before + 3


def test_one_job_runs_where_it_is():
    before = number_of_interpreters()
    assert ids_of(1) == {0}
    assert number_of_interpreters() == before


def test_an_error_drops_what_has_not_begun():
    """What an earlier call has left would delay the next one."""
    done = []

    def tasks():
        yield joblib.delayed(work.raise_in_chain)()
        for _ in range(100):
            yield joblib.delayed(work.sleep)(0.02)

    class Counted(extisolate.joblib.InterpretersBackend):
        def apply_async(self, func, callback=None):
            outcome = super().apply_async(func, callback)
            done.append(outcome)
            return outcome

        submit = apply_async  # which newer joblibs call

    backend = Counted()
    with pytest.raises(ValueError, match="second"):
        joblib.Parallel(n_jobs=2, backend=backend, batch_size=1, pre_dispatch="all")(tasks())
    assert len(done) == 101
    assert all(outcome._future.done() for outcome in done)
    assert sum(outcome._future.cancelled() for outcome in done) > 50


def test_a_parallel_object_goes_on_after_an_error():
    # Of calls that make tasks meanwhile joblib itself keeps some for the next one.
    with joblib.Parallel(n_jobs=2, backend="extisolate", pre_dispatch="all") as parallel:
        with pytest.raises(ValueError, match="second"):
            parallel(joblib.delayed(work.raise_in_chain)() for _ in range(10))
        assert parallel(joblib.delayed(math.sqrt)(i * i) for i in range(10)) == list(range(10))


def test_what_others_have_ended_is_replaced():
    first = ids_of(2)
    extisolate.Interpreter(min(first)).close()
    second = ids_of(2)
    assert len(second) == 2 and not first & second
    extisolate.joblib._keeper._pool.shutdown()
    third = ids_of(2)
    assert len(third) == 2 and not second & third


def test_threads_at_the_same_time():
    """Each has interpreters of its own, of which those of one are kept."""
    before = number_of_interpreters()
    found = [None] * 2
    begin = threading.Barrier(len(found))

    def call(i):
        begin.wait()
        found[i] = [ids_of(2) for _ in range(2)]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids and 0 not in ids for of_thread in found for ids in of_thread)
    assert number_of_interpreters() == before + 2


def test_calls_within_calls():
    parallel = joblib.Parallel(n_jobs=2, backend="extisolate")
    inner = parallel(joblib.delayed(work.parallel_ids)() for _ in range(4))
    assert all(len(ids) == 2 and 0 not in ids for ids in inner)


def test_a_call_by_way_of_the_main_interpreter():
    """Its workers are others than those that wait for it."""
    parallel = joblib.Parallel(n_jobs=2, backend="extisolate")
    inner = parallel(joblib.delayed(work.parallel_ids_by_main)() for _ in range(4))
    assert all(ids and 0 not in ids for ids in inner)


def test_threads_within_a_task():
    """By joblib's rules a call that asks for no backend has threads there."""
    found = joblib.Parallel(n_jobs=2, backend="extisolate")(
        joblib.delayed(work.parallel_sum)(i) for i in range(4)
    )
    assert found == [0, 1, 3, 6]


def test_tasks_that_a_call_makes():
    with joblib.parallel_backend("extisolate", n_jobs=2):

        def tasks():
            for i in range(20):
                inner = joblib.Parallel()(joblib.delayed(math.sqrt)(x * x) for x in range(i))
                yield joblib.delayed(sum)(inner)

        assert joblib.Parallel()(tasks()) == [sum(range(i)) for i in range(20)]


def test_a_program_ends_with_interpreters_kept():
    done = run("""
import extisolate.joblib, joblib, work
parallel = joblib.Parallel(n_jobs=2, backend="extisolate")
print(parallel(joblib.delayed(work.add)(i) for i in range(4)))
print(len(parallel(joblib.delayed(work.parallel_ids)() for i in range(2))))
""")
    assert (done.stdout, done.stderr, done.returncode) == ("[1, 2, 3, 4]\n2\n", "", 0)


def test_a_forked_child_has_interpreters_of_its_own():
    done = run("""
import extisolate.joblib, os, work
first = work.parallel_ids()
pid = os.fork()
if pid == 0:
    os._exit(len(work.parallel_ids()))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), work.parallel_ids() == first)
""")
    assert (done.stdout, done.returncode) == ("2 True\n", 0), done.stderr


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

"""The programs: how each is started, what of the package index it needs, and how it is talked to."""

import dataclasses

SIGNALS = ("SIGINT", "SIGTERM")


@dataclasses.dataclass
class Case:
    name: str
    needs: tuple        # requirements
    words: tuple        # of the command line after `python3`; PORT, INDEX and FOLDER are the context's own
    client: str = "http"    # or a script in apps/, which gets a port and a folder; or none
    ready: str = ""     # what it says when it is ready, if that counts
    ready_times: int = 1
    ends: tuple = SIGNALS   # ("",): it ends by itself,
    status: int = 0     # with this
    ordered: bool = True    # the order of its lines is always the same
    load: bool = True
    holds: bool = False     # a request that is not answered is open when it is to end
    again: str = ""     # what it says before the signal is sent once more
    racy: tuple = ()    # patterns of lines that come or not, as the program races with itself
    racy_at_int: tuple = ()     # after ^C, which its children get as well
    stuck: float = 0    # an end takes so many seconds if the program waits for itself, as it does now and then
    noisy: bool = False     # its children say what the ends of each other make them say
    apart: bool = False     # each copy writes to its own file, since it does so piece by piece
    input: str = ""     # a file in apps/ that is the standard input of each copy
    patience: int = 120     # seconds
    environment: dict = dataclasses.field(default_factory=dict)


def module(name, needs, *words, **more):
    return Case(name, needs, ("-m", *words), **more)


def script(name, needs, *words, **more):
    return Case(name, needs, words, **more)


UVICORN = ("uvicorn", "app:asgi", "--host", "127.0.0.1", "--port", "PORT", "--no-access-log")
# Requests that the load has made, which differ in number, and that it has given up at its end.
REQUESTS = (r'127\.0\.0\.1 - - \[TIME\] "GET', r'\[TIME\] "GET / HTTP', r"\[TIME(,\d+)?\] - Broken pipe from")
GUNICORN = ("gunicorn", "app:wsgi", "--bind", "127.0.0.1:PORT")
# All use one socket, which the last has.
CONTROL = (r".*Control (socket listening|server error)",)
# A worker that ^C has reached is ended by its master as well, at once.
WORKERS = (r".*Worker exiting", r".*was sent SIGKILL")

# Not `fd`, as descriptors are the process's.
PYTEST = ("pytest", "-v", "-p", "no:cacheprovider", "--capture=sys", "--basetemp=FOLDER/tmp")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NPY_AVAILABLE_MEM": "1GB"}


def suite(name, needs, *words):
    return module(name, needs, *PYTEST, *words, client="", ends=("",), apart=True, patience=1200,
                  environment=ONE_THREAD)


def ends_by_itself(make, name, needs, *words, **more):
    return make(name, needs, *words, client="", ends=("",), apart=True, patience=600, **more)


def waits(make, name, needs, *words, **more):
    return make(name, needs, *words, client="", ready="is ready", apart=True, **more)


NOTEBOOK = ("nbconvert", "ipykernel", "numpy")
NBCONVERT = ("nbconvert", "--to", "markdown", "--stdout", "--execute")
IPYTHON = ("IPython", "--colors=NoColor", "--no-banner", "--no-confirm-exit", "--HistoryManager.enabled=False")
DASK = ("dask[array]", "distributed")

CASES = [
    # Servers of ASGI
    module("uvicorn-asyncio", ("uvicorn",), *UVICORN, "--loop", "asyncio"),
    module("uvicorn-uvloop", ("uvicorn", "uvloop", "httptools"), *UVICORN, "--loop", "uvloop"),
    module("uvicorn-workers", ("uvicorn",), *UVICORN, "--workers", "2", ordered=False,
           ready="Application startup complete", ready_times=2, racy_at_int=("INFO: +Terminated child process",)),
    module("uvicorn-forced", ("uvicorn",), *UVICORN, holds=True, load=False, ends=("SIGINT",),
           again="Waiting for connections to close"),
    module("hypercorn", ("hypercorn",), "hypercorn", "app:asgi", "--bind", "127.0.0.1:PORT"),
    script("aiohttp", ("aiohttp",), "aiohttp_app.py", "PORT"),
    # Servers of WSGI
    module("gunicorn-sync", ("gunicorn",), *GUNICORN, "--workers", "2", ordered=False, racy=CONTROL,
           racy_at_int=WORKERS),
    # Its worker gets ^C from the terminal and SIGQUIT from its master, and whichever comes while the other's handler
    # has the lock of the pool of threads waits for that until the worker is killed.
    module("gunicorn-gthread", ("gunicorn",), *GUNICORN, "--threads", "4", ordered=False, racy=CONTROL,
           racy_at_int=WORKERS, stuck=25),
    module("gunicorn-asgi", ("gunicorn", "uvicorn", "uvicorn-worker"), "gunicorn", "app:asgi", "--bind",
           "127.0.0.1:PORT", "--worker-class", "uvicorn_worker.UvicornWorker", ordered=False,
           racy=CONTROL, racy_at_int=WORKERS),
    module("flask", ("flask",), "flask", "--app", "app:flask", "run", "--port", "PORT", racy=REQUESTS),
    module("waitress", ("waitress",), "waitress", "--listen=127.0.0.1:PORT", "app:wsgi",
           racy=("WARNING:waitress.queue:Task queue depth",)),
    script("django", ("django",), "django_app.py", "runserver", "--noreload", "127.0.0.1:PORT",
           racy=REQUESTS),
    script("django-reloads", ("django",), "django_app.py", "runserver", "127.0.0.1:PORT", racy=REQUESTS),
    script("http.server", (), "http_server.py", "PORT", racy=REQUESTS),
    # Others
    script("grpc", ("grpcio",), "grpc_server.py", "PORT", client="grpc_client.py", ready="serving"),
    module("celery-solo", ("celery",), "celery", "-A", "celery_app", "worker", "--pool", "solo", "--hostname",
           "celery@INDEX", "--loglevel", "INFO", client="celery_client.py", ready=" ready.", ordered=False),
    module("celery-prefork", ("celery",), "celery", "-A", "celery_app", "worker", "--pool", "prefork",
           "--concurrency", "2", "--hostname", "celery@INDEX", "--loglevel", "INFO", client="celery_client.py",
           ready=" ready.", ordered=False),
    module("celery-forced", ("celery",), "celery", "-A", "celery_app", "worker", "--pool", "prefork",
           "--concurrency", "2", "--hostname", "celery@INDEX", "--loglevel", "INFO", client="celery_waits.py",
           ready=" ready.", ordered=False, again="Warm shutdown", ends=("SIGINT",)),
    # Tests
    suite("pytest-numpy", ("pytest", "hypothesis", "numpy"), "-m", "not slow", "--pyargs", "numpy.linalg",
          "numpy._core.tests.test_multiarray"),
    suite("pytest-pandas", ("pytest", "hypothesis", "pandas"), "-m",
          "not slow and not network and not db and not single_cpu",
          "--pyargs", "pandas.tests.indexing", "pandas.tests.groupby.test_groupby"),
    suite("pytest-pytest", ("pytest", "hypothesis", "attrs", "source:pytest"), "--rootdir=SOURCES/pytest",
          "-c", "SOURCES/pytest/pyproject.toml", *("SOURCES/pytest/testing/" + name for name in (
              "test_mark.py", "test_assertion.py", "test_skipping.py", "test_runner.py", "test_session.py",
              "test_monkeypatch.py", "test_recwarn.py", "python/raises.py", "python/approx.py"))),
    ends_by_itself(module, "pytest-fails", ("pytest",), *PYTEST, "APPS/waits_test.py", "-k", "not test_waits",
                   status=1),
    waits(module, "pytest-waits", ("pytest",), *PYTEST, "APPS/waits_test.py"),
    # Sessions and notebooks
    ends_by_itself(module, "ipython", ("ipython", "numpy"), *IPYTHON, input="session.txt"),
    waits(module, "ipython-waits", ("ipython",), *IPYTHON, input="interrupted.txt"),
    ends_by_itself(module, "nbconvert", NOTEBOOK, *NBCONVERT, "APPS/notebook.ipynb"),
    ends_by_itself(module, "nbconvert-fails", NOTEBOOK, *NBCONVERT, "APPS/fails.ipynb", status=1),
    # Its kernel gets ^C as well, and may end first; where in its loop the program is differs.
    waits(module, "nbconvert-waits", NOTEBOOK, *NBCONVERT, "APPS/waits.ipynb",
          racy_at_int=(r"Task exception was never retrieved\n(?:.+\n)*?nbclient\.exceptions\.DeadKernelError",
                       r".*Kernel died while waiting", "  ")),
    # Clusters
    ends_by_itself(script, "dask-threads", DASK, "dask_app.py", "threads"),
    ends_by_itself(script, "dask-processes", DASK, "dask_app.py", "processes"),
    waits(script, "dask-threads-waits", DASK, "dask_app.py", "threads", "waits", ordered=False),
    waits(script, "dask-processes-waits", DASK, "dask_app.py", "processes", "waits", ordered=False, noisy=True,
          racy_at_int=(".*Worker process still alive",
                       r"TIME - distributed\.nanny - ERROR -.*\n(?:.+\n)*?asyncio\.exceptions\.CancelledError")),
]

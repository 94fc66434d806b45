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
    ends: tuple = SIGNALS   # ("",): it ends by itself
    ordered: bool = True    # the order of its lines is always the same
    load: bool = True
    environment: dict = dataclasses.field(default_factory=dict)


def module(name, needs, *words, **more):
    return Case(name, needs, ("-m", *words), **more)


def script(name, needs, *words, **more):
    return Case(name, needs, words, **more)


UVICORN = ("uvicorn", "app:asgi", "--host", "127.0.0.1", "--port", "PORT", "--no-access-log")
GUNICORN = ("gunicorn", "app:wsgi", "--bind", "127.0.0.1:PORT")

CASES = [
    # Servers of ASGI
    module("uvicorn-asyncio", ("uvicorn",), *UVICORN, "--loop", "asyncio"),
    module("uvicorn-uvloop", ("uvicorn", "uvloop", "httptools"), *UVICORN, "--loop", "uvloop"),
    module("uvicorn-workers", ("uvicorn",), *UVICORN, "--workers", "2", ordered=False,
           ready="Application startup complete", ready_times=2),
    module("hypercorn", ("hypercorn",), "hypercorn", "app:asgi", "--bind", "127.0.0.1:PORT"),
    script("aiohttp", ("aiohttp",), "apps/aiohttp_app.py", "PORT"),
    # Servers of WSGI
    module("gunicorn-sync", ("gunicorn",), *GUNICORN, "--workers", "2", ordered=False),
    module("gunicorn-gthread", ("gunicorn",), *GUNICORN, "--threads", "4", ordered=False),
    module("gunicorn-asgi", ("gunicorn", "uvicorn", "uvicorn-worker"), "gunicorn", "app:asgi", "--bind",
           "127.0.0.1:PORT", "--worker-class", "uvicorn_worker.UvicornWorker", ordered=False),
    module("flask", ("flask",), "flask", "--app", "app:flask", "run", "--port", "PORT", load=False),
    module("waitress", ("waitress",), "waitress", "--listen=127.0.0.1:PORT", "app:wsgi"),
    script("django", ("django",), "apps/django_app.py", "runserver", "--noreload", "127.0.0.1:PORT", load=False),
    script("django-reloads", ("django",), "apps/django_app.py", "runserver", "127.0.0.1:PORT", load=False),
    script("http.server", (), "apps/http_server.py", "PORT", load=False),
    # Others
    script("grpc", ("grpcio",), "apps/grpc_server.py", "PORT", client="grpc_client.py", ready="serving"),
    module("celery-solo", ("celery",), "celery", "-A", "celery_app", "worker", "--pool", "solo", "--hostname",
           "celery@INDEX", "--loglevel", "INFO", client="celery_client.py", ready=" ready.", ordered=False),
    module("celery-prefork", ("celery",), "celery", "-A", "celery_app", "worker", "--pool", "prefork",
           "--concurrency", "2", "--hostname", "celery@INDEX", "--loglevel", "INFO", client="celery_client.py",
           ready=" ready.", ordered=False),
]

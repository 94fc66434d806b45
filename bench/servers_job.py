"""What each copy of bench/servers.py runs: python servers_job.py uvicorn|flask PORT, the first of all to contexts."""

import logging
import sys

import numpy

try:
    import extisolate
except ImportError:
    extisolate = None

numbers = numpy.arange(1000.0)


def run_uvicorn(port):
    import fastapi
    import uvicorn

    app = fastapi.FastAPI()

    @app.get("/")
    async def root():
        return {"sum": float(numbers.sum())}

    uvicorn.run(app, port=port, log_level="warning")


def run_flask(port):
    import flask

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = flask.Flask("servers")

    @app.get("/")
    def root():
        return {"sum": float(numbers.sum())}

    app.run(port=port, threaded=True)


if __name__ == "__main__":
    first = int(sys.argv[2])
    {"uvicorn": run_uvicorn, "flask": run_flask}[sys.argv[1]](first + (extisolate.index if extisolate else 0))

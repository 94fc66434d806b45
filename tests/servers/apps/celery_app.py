"""Tasks whose broker and results are files in the working context's own folder."""

import os
import time

import celery


def made(folder):
    for name in "in", "results", "control":
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    app = celery.Celery("celery_app", broker="filesystem://", backend="file://" + os.path.join(folder, "results"))
    app.conf.update(
        broker_transport_options={
            "data_folder_in": os.path.join(folder, "in"),
            "data_folder_out": os.path.join(folder, "in"),
            "control_folder": os.path.join(folder, "control"),
        },
        broker_connection_retry_on_startup=True,
        worker_enable_remote_control=False,
        task_track_started=True,
    )

    @app.task(name="square")
    def square(n):
        return n * n

    @app.task(name="wait")
    def wait():
        time.sleep(600)

    return app


if "EXTI_SERVERS_OWN" in os.environ:
    app = made(os.environ["EXTI_SERVERS_OWN"])

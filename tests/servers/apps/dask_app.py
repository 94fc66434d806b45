"""A cluster of dask's on this machine: dask_app.py threads|processes [waits]"""

import os
import sys
import time

import dask
import dask.array
import dask.bag
from distributed import Client, LocalCluster, as_completed


def square(n):
    return n * n


def where(n):
    return os.path.basename(os.environ["EXTI_SERVERS_OWN"])


def fails(n):
    raise ValueError("%d is refused" % n)


def wait_for_ever(said):
    with open(said, "a") as f:
        f.write("is ready\n")
    while True:
        time.sleep(0.1)


class Counter:
    def __init__(self):
        self.n = 0

    def add(self, n):
        self.n += n
        return self.n


def work(client):
    print(sorted(client.gather(client.map(square, range(200)))) == [n * n for n in range(200)])
    print(set(client.gather(client.map(where, range(20)))))
    print(sum(f.result() for f in as_completed(client.map(square, range(1000, 1010)))))
    x = dask.array.random.default_rng(0).random((400, 400), chunks=(100, 100))
    print("%.9f" % (x @ x.T).mean().compute())
    print(dask.bag.from_sequence(range(1000), npartitions=8).map(lambda n: n % 7).frequencies().compute())
    try:
        client.submit(fails, 7).result()
    except ValueError as e:
        print("ValueError", e)
    counter = client.submit(Counter, actor=True).result()
    print([counter.add(n).result() for n in range(5)])
    print(client.run_on_scheduler(where, 0), list(client.run(where, 0).values()), list(client.nthreads().values()))


def main():
    dask.config.set({"distributed.worker.use-file-locking": False})
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=sys.argv[1] == "processes",
                      dashboard_address=":0", local_directory=os.environ["EXTI_SERVERS_OWN"]) as cluster:
        with Client(cluster) as client:
            if len(sys.argv) > 2:
                client.submit(wait_for_ever, os.path.join(os.environ["EXTI_SERVERS_OWN"], "said")).result()
            work(client)
    print("has closed")


if __name__ == "__main__":
    main()

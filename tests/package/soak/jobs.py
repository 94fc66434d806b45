"""Real work for each of the packages, which gives the same result anywhere."""

import functools


@functools.lru_cache(maxsize=None)
def data(n=200):
    import random

    r = random.Random(n)
    return [[r.random() for _ in range(8)] for _ in range(n)]


def numpy(n):
    import numpy as np

    a = np.array(data())
    u, s, v = np.linalg.svd(a[n % 50 : n % 50 + 100])
    return round(float(s.sum()), 6)


def scipy(n):
    import numpy as np
    from scipy import linalg, optimize

    a = np.array(data())[: 20 + n % 20]
    found = optimize.least_squares(lambda x: a @ x - 1, np.zeros(8))
    return round(float(found.cost + linalg.norm(a)), 5)


def pandas(n):
    import pandas as pd

    frame = pd.DataFrame(data(), columns=list("abcdefgh"))
    frame["key"] = [str((i * n) % 7) for i in range(len(frame))]
    return round(float(frame.groupby("key")["a"].mean().sum()), 6)


def pyarrow(n):
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.table({"a": [row[0] for row in data()], "b": [i % (n % 9 + 1) for i in range(200)]})
    kept = table.filter(pc.greater(table["a"], 0.5))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as writer:
        writer.write_table(kept)
    return pa.ipc.open_stream(sink.getvalue()).read_all().num_rows


def lxml(n):
    from lxml import etree

    root = etree.Element("all")
    for i in range(n % 40 + 10):
        etree.SubElement(root, "item", number=str(i)).text = "text " * (i % 5)
    found = etree.fromstring(etree.tostring(root)).xpath("//item[@number > 5]")
    return len(found), root.xpath("string(//item[4])")


def torch(n):
    import torch

    torch.set_num_threads(1)
    a = torch.tensor(data(), dtype=torch.float64)[: 50 + n % 50]
    w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    loss = ((a @ w - 1) ** 2).mean()
    loss.backward()
    return round(float(w.grad.sum()), 6)


def sklearn(n):
    import numpy as np
    from sklearn.linear_model import Ridge

    a = np.array(data())[: 100 + n % 100]
    return round(float(Ridge(alpha=1.0).fit(a[:, :7], a[:, 7]).coef_.sum()), 6)


ALL = (numpy, scipy, pandas, pyarrow, lxml, torch, sklearn)

# debian: python3-coverage
# pypi: coverage
import os
import tempfile

import coverage
from coverage import tracer

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "measured.py")
    with open(path, "w") as f:
        f.write("def f(x):\n    if x:\n        return 1\n    return 2\n\n\nf(1)\n")
    measure = coverage.Coverage(data_file=None, include=[path])
    measure.start()
    exec(compile(open(path).read(), path, "exec"), {"__name__": "measured"})
    measure.stop()
    _, lines, _, missed, _ = measure.analysis2(path)
    assert lines == [1, 2, 3, 4, 7] and missed == [4] and tracer.CTracer

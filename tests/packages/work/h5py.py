# debian: python3-h5py
# pypi: h5py
import os
import tempfile
import time

import h5py
import numpy as np


def reopened(path):
    """h5py asks uname(1) as it is imported.  Until that child runs it, it holds the files that other
    contexts have open, and their locks with them."""
    late = time.monotonic() + 60
    while True:
        try:
            return h5py.File(path, "r")
        except BlockingIOError:
            if time.monotonic() > late:
                raise
        time.sleep(0.01)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("g/d", data=np.arange(10000).reshape(100, 100), compression="gzip", chunks=(10, 100))
        d.attrs["unit"] = "m"
        f["s"] = "text"
    with reopened(path) as f:
        assert f["g/d"][7, 3] == 703 and f["g/d"].attrs["unit"] == "m"
        assert f["s"][()].decode() == "text" and list(f) == ["g", "s"]
        assert int(f["g/d"][...].sum()) == 49995000

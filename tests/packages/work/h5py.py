# debian: python3-h5py
# pypi: h5py
import os
import tempfile

import h5py
import numpy as np

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("g/d", data=np.arange(10000).reshape(100, 100), compression="gzip", chunks=(10, 100))
        d.attrs["unit"] = "m"
        f["s"] = "text"
    with h5py.File(path, "r") as f:
        assert f["g/d"][7, 3] == 703 and f["g/d"].attrs["unit"] == "m"
        assert f["s"][()].decode() == "text" and list(f) == ["g", "s"]
        assert int(f["g/d"][...].sum()) == 49995000

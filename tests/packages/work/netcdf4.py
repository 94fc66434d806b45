# debian: python3-netcdf4
import os
import tempfile

import netCDF4
import numpy as np

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.nc")
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("t", None)
        v = f.createVariable("v", "f8", ("t",), zlib=True)
        v.units = "K"
        v[:] = np.linspace(0, 1, 500)
    with netCDF4.Dataset(path) as f:
        assert f["v"].units == "K" and abs(f["v"][:].sum() - 250) < 1e-9

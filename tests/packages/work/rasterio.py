# debian: python3-rasterio
import numpy as np
import rasterio
from rasterio.features import rasterize
from rasterio.io import MemoryFile
from rasterio.transform import from_origin

data = np.arange(600, dtype="float32").reshape(20, 30)
with MemoryFile() as memory:
    with memory.open(driver="GTiff", width=30, height=20, count=1, dtype="float32", crs="EPSG:4326",
                     transform=from_origin(10, 50, 0.1, 0.1), compress="deflate") as out:
        out.write(data, 1)
    with memory.open() as back:
        assert (back.read(1) == data).all() and back.crs.to_epsg() == 4326
        assert back.index(10.05, 49.95) == (0, 0)
shape = {"type": "Polygon", "coordinates": [[(2, 2), (6, 2), (6, 5), (2, 5), (2, 2)]]}
assert rasterize([shape], (10, 10)).sum() == 12

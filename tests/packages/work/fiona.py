# debian: python3-fiona
import os
import tempfile

import fiona

schema = {"geometry": "Point", "properties": {"n": "int"}}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.gpkg")
    with fiona.open(path, "w", driver="GPKG", schema=schema, crs="EPSG:4326") as out:
        for i in range(10):
            out.write({"type": "Feature", "geometry": {"type": "Point", "coordinates": (i, 2 * i)}, "properties": {"n": i}})
    with fiona.open(path) as back:
        assert len(back) == 10 and back.bounds == (0, 0, 9, 18)
        assert [f["properties"]["n"] for f in back.filter(bbox=(2.5, 0, 4.5, 20))] == [3, 4]

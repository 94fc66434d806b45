# debian: python3-tables
import os
import tempfile

import tables


class Row(tables.IsDescription):
    n = tables.Int32Col()
    x = tables.Float64Col()


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.h5")
    with tables.open_file(path, "w", filters=tables.Filters(5, "blosc")) as f:
        table = f.create_table("/", "t", Row)
        table.append([(i, i / 2) for i in range(1000)])
    with tables.open_file(path) as f:
        assert [r["n"] for r in f.root.t.where("(x > 3) & (x < 5)")] == [7, 8, 9]

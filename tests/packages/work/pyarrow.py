# pypi: pyarrow
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

table = pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]})
assert pc.sum(table["v"]).as_py() == 6
out = io.BytesIO()
pq.write_table(table, out, compression="zstd")
back = pq.read_table(io.BytesIO(out.getvalue()))
assert back.equals(table)
assert table.group_by("k").aggregate([("v", "sum")]).sort_by("k")["v_sum"].to_pylist() == [4, 2]

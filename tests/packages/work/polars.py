# pypi: polars
import io

import polars as pl

frame = pl.read_csv(io.BytesIO(b"k,v\na,1\nb,2\na,3\n"))
sums = frame.lazy().group_by("k").agg(pl.col("v").sum()).sort("k").collect()
assert sums["v"].to_list() == [4, 2]
out = io.BytesIO()
frame.write_parquet(out)
assert pl.read_parquet(io.BytesIO(out.getvalue())).equals(frame)

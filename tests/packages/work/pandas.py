# debian: python3-pandas
# pypi: pandas
import io

import pandas as pd

frame = pd.read_csv(io.StringIO("k,v\na,1\nb,2\na,3\n"))
sums = frame.groupby("k")["v"].sum()
assert sums.to_dict() == {"a": 4, "b": 2}
merged = frame.merge(pd.DataFrame({"k": ["a", "b"], "w": [10.0, 20.0]}), on="k")
assert (merged.v * merged.w).sum() == 80
hours = pd.date_range("2024-01-01", periods=48, freq="D")
assert pd.Series(range(48), index=hours).rolling(2).mean().iloc[-1] == 46.5

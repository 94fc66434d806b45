# debian: python3-bottleneck
import bottleneck as bn
import numpy as np

a = np.array([1, np.nan, 3, 8, -2.0])
assert bn.nansum(a) == 10 and bn.nanmedian(a) == 2
assert bn.move_sum(np.arange(6.0), 3)[-1] == 12 and bn.partition(a[[0, 2, 3, 4]], 1)[0] == -2

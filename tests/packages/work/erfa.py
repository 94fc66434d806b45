# debian: python3-erfa
import erfa
import numpy as np

d1, d2 = erfa.cal2jd(2000, 1, [1, 2, 3])
assert (d1 + d2 == [2451544.5, 2451545.5, 2451546.5]).all()
matrix = erfa.pnm06a(2451545.0, np.linspace(0, 1000, 5))
assert np.allclose(matrix @ matrix.transpose(0, 2, 1), np.eye(3))

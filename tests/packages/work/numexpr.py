# debian: python3-numexpr
import numexpr
import numpy as np

a, b = np.arange(200000.0), np.arange(200000.0)[::-1].copy()
assert np.allclose(numexpr.evaluate("2*a + sqrt(b) - where(a > b, 1, 0)"), 2 * a + np.sqrt(b) - (a > b))
assert numexpr.evaluate("sum(a * b)") == (a * b).sum()

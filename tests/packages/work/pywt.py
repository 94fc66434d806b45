# debian: python3-pywt
import numpy as np
import pywt

x = np.sin(np.arange(256) / 9)
assert np.allclose(pywt.waverec(pywt.wavedec(x, "db4", level=3), "db4"), x)
assert np.allclose(pywt.idwt2(pywt.dwt2(np.outer(x, x), "haar"), "haar"), np.outer(x, x))
assert pywt.cwt(x, [4, 8], "mexh")[0].shape == (2, 256)

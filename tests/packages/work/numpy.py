# debian: python3-numpy
# pypi: numpy
import numpy as np

random = np.random.default_rng(7)
a = random.standard_normal((120, 120)) + 120 * np.eye(120)
x = np.linalg.solve(a, np.ones(120))
assert np.allclose(a @ x, 1)
assert np.allclose(np.fft.ifft(np.fft.fft(x)).real, x)
assert np.einsum("ij,ji->", a, np.linalg.inv(a)).round(6) == 120

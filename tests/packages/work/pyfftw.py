# debian: python3-pyfftw
import numpy as np
import pyfftw

a = np.random.default_rng(2).standard_normal((32, 48))
assert np.allclose(pyfftw.interfaces.numpy_fft.fft2(a, threads=2), np.fft.fft2(a))
x = pyfftw.empty_aligned(128, dtype="complex64")
plan = pyfftw.builders.fft(x)
x[:] = np.arange(128)
assert np.allclose(plan(), np.fft.fft(np.arange(128)), rtol=1e-3, atol=0.1)

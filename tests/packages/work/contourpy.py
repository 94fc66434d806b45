# debian: python3-contourpy
# pypi: contourpy
import contourpy
import numpy as np

x, y = np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-2, 2, 41))
for name in "mpl2005", "mpl2014", "serial", "threaded":
    lines = contourpy.contour_generator(x, y, x**2 + y**2, name=name).lines(1.0)
    line = lines[0] if isinstance(lines[0], np.ndarray) else lines[0][0]
    assert np.allclose(np.hypot(*line.T), 1, atol=0.01)

# debian: python3-matplotlib
# pypi: matplotlib
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(figsize=(4, 3), dpi=50)
axes.plot(np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2)
axes.contourf(np.outer(np.arange(10), np.arange(10)))
axes.set_title("isolated")
figure.canvas.draw()
pixels = np.asarray(figure.canvas.buffer_rgba())
assert pixels.shape == (150, 200, 4) and len(np.unique(pixels.reshape(-1, 4), axis=0)) > 20
out = io.BytesIO()
figure.savefig(out, format="png")
assert out.getvalue().startswith(b"\x89PNG")
plt.close(figure)

# debian: python3-scipy
# pypi: scipy
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import scipy.special

n = 200
a = scipy.sparse.diags([-np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csc")
x = scipy.sparse.linalg.spsolve(a, np.ones(n))
assert np.allclose(a @ x, 1)
assert np.allclose(scipy.linalg.solve_banded((1, 1), np.array([[-1.0] * n, [4.0] * n, [-1.0] * n]), np.ones(n)), x)
assert abs(scipy.integrate.quad(np.exp, 0, 1)[0] - (np.e - 1)) < 1e-9
assert abs(scipy.optimize.brentq(lambda v: v**3 - 2, 0, 2) - 2 ** (1 / 3)) < 1e-9
assert abs(scipy.special.gamma(5.5) - 52.34277778455352) < 1e-9

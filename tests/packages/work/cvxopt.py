# debian: python3-cvxopt
from cvxopt import cholmod, lapack, matrix, solvers, spmatrix

solvers.options["show_progress"] = False
answer = solvers.lp(matrix([-4.0, -5.0]), matrix([[2.0, 1.0, -1.0, 0.0], [1.0, 2.0, 0.0, -1.0]]), matrix([3.0, 3.0, 0.0, 0.0]))
assert answer["status"] == "optimal" and max(abs(answer["x"] - matrix([1.0, 1.0]))) < 1e-4
a, b = matrix([[4.0, 1.0], [1.0, 3.0]]), matrix([1.0, 2.0])
x = +b
lapack.posv(+a, x)
assert max(abs(a * x - b)) < 1e-12
s = spmatrix([4.0, 1.0, 3.0], [0, 1, 1], [0, 0, 1])
y = +b
cholmod.linsolve(s, y)
assert max(abs(y - x)) < 1e-12

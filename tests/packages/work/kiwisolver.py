# debian: python3-kiwisolver
# pypi: kiwisolver
from kiwisolver import Solver, UnsatisfiableConstraint, Variable

x, y, solver = Variable("x"), Variable("y"), Solver()
for c in (x + y == 10, x - y == 2, x >= 0):
    solver.addConstraint(c)
solver.updateVariables()
assert (x.value(), y.value()) == (6, 4)
try:
    solver.addConstraint(x == 7)
except UnsatisfiableConstraint:
    pass
else:
    raise AssertionError("what cannot be was accepted")

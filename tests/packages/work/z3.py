# debian: python3-z3
import z3

x, y = z3.Ints("x y")
solver = z3.Solver()
solver.add(x + 2 * y == 7, x > 2, y > 1)
assert solver.check() == z3.sat and solver.model()[x].as_long() + 2 * solver.model()[y].as_long() == 7
solver.add(x > 5)
assert solver.check() == z3.unsat

# debian: python3-pyrsistent
import pvectorc
import pyrsistent

vector = pyrsistent.v(*range(2000))
later = vector.set(1500, "x").append(3)
assert type(vector).__module__ in ("pvectorc", "builtins") and pvectorc.pvector
assert vector[1500] == 1500 and later[1500] == "x" and len(later) == 2001 and sum(vector) == 1999000

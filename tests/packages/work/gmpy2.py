# debian: python3-gmpy2
import gmpy2

assert gmpy2.is_prime(2**127 - 1) and gmpy2.fac(30) == 265252859812191058636308480000000
assert gmpy2.invert(3, 11) == 4 and gmpy2.mpq(1, 3) + gmpy2.mpq(1, 6) == gmpy2.mpq(1, 2)
with gmpy2.local_context(gmpy2.context(), precision=200):
    assert str(gmpy2.const_pi()).startswith("3.14159265358979323846264338327950288419716939937510")
assert gmpy2.mpc(0, 1) ** 2 == -1

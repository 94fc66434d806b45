# debian: python3-numba
import numba
import numpy as np


@numba.njit
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@numba.njit
def norm(a):
    total = 0.0
    for x in a.flat:
        total += x * x
    return np.sqrt(total)


assert collatz(27) == 111 and collatz.signatures
assert norm(np.full((3, 3), 2.0)) == 6

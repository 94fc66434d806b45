# debian: python3-argon2
import argon2

hasher = argon2.PasswordHasher(time_cost=1, memory_cost=1024, parallelism=2)
hashed = hasher.hash("password")
assert hashed.startswith("$argon2id$") and hasher.verify(hashed, "password")
try:
    hasher.verify(hashed, "other")
except argon2.exceptions.VerifyMismatchError:
    pass
else:
    raise AssertionError("a wrong password was accepted")

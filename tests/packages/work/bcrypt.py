# debian: python3-bcrypt
# pypi: bcrypt
import bcrypt

hashed = bcrypt.hashpw(b"password", bcrypt.gensalt(4))
assert bcrypt.checkpw(b"password", hashed) and not bcrypt.checkpw(b"other", hashed)
assert bcrypt.kdf(b"p", b"salt", 16, 4, ignore_few_rounds=True) == bcrypt.kdf(b"p", b"salt", 16, 4, ignore_few_rounds=True)

# debian: python3-nacl
# pypi: PyNaCl
import nacl.exceptions
import nacl.public
import nacl.secret
import nacl.signing
import nacl.utils

a, b = nacl.public.PrivateKey.generate(), nacl.public.PrivateKey.generate()
sealed = nacl.public.Box(a, b.public_key).encrypt(b"words")
assert nacl.public.Box(b, a.public_key).decrypt(sealed) == b"words"
key = nacl.signing.SigningKey.generate()
signed = key.sign(b"words")
assert key.verify_key.verify(signed) == b"words"
try:
    key.verify_key.verify(signed[:-1] + bytes([signed[-1] ^ 1]))
except nacl.exceptions.BadSignatureError:
    pass
else:
    raise AssertionError("a wrong signature was accepted")

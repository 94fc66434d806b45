# debian: python3-pycryptodome
from Cryptodome.Cipher import AES, ChaCha20_Poly1305
from Cryptodome.Hash import SHA3_256
from Cryptodome.PublicKey import ECC
from Cryptodome.Signature import DSS

cipher = AES.new(b"k" * 16, AES.MODE_GCM, nonce=b"n" * 12)
text, tag = cipher.encrypt_and_digest(b"words")
assert AES.new(b"k" * 16, AES.MODE_GCM, nonce=b"n" * 12).decrypt_and_verify(text, tag) == b"words"
try:
    ChaCha20_Poly1305.new(key=b"k" * 32, nonce=b"n" * 12).decrypt_and_verify(b"words", b"t" * 16)
except ValueError:
    pass
else:
    raise AssertionError("a wrong tag was accepted")
assert SHA3_256.new(b"").hexdigest().startswith("a7ffc6f8bf1ed766")
key = ECC.generate(curve="P-256")
digest = SHA3_256.new(b"m")
DSS.new(key.public_key(), "fips-186-3").verify(digest, DSS.new(key, "fips-186-3").sign(digest))

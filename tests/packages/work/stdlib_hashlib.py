# debian: libpython3-stdlib
import hashlib
import hmac

assert hashlib.sha256(b"abc").hexdigest().startswith("ba7816bf8f01cfea414140de5dae2223")
assert hashlib.blake2b(b"abc", digest_size=8).hexdigest() == "d8bb14d833d59559"
assert hashlib.new("sha512", b"").hexdigest().startswith("cf83e1357eefb8bd")
assert hashlib.pbkdf2_hmac("sha1", b"password", b"salt", 2).hex() == (
    "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"
)
assert hmac.new(b"key", b"what", "md5").digest_size == 16

# debian: python3-cryptography
# pypi: cryptography
from cryptography.exceptions import InvalidSignature
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

box = Fernet(Fernet.generate_key())
assert box.decrypt(box.encrypt(b"secret")) == b"secret"
key = ec.generate_private_key(ec.SECP256R1())
signature = key.sign(b"words", ec.ECDSA(hashes.SHA256()))
key.public_key().verify(signature, b"words", ec.ECDSA(hashes.SHA256()))
try:
    key.public_key().verify(signature, b"other", ec.ECDSA(hashes.SHA256()))
except InvalidSignature:
    pass
else:
    raise AssertionError("a wrong signature was accepted")
pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
assert serialization.load_pem_public_key(pem).public_numbers() == key.public_key().public_numbers()

# debian: python3-netifaces
import netifaces

assert "lo" in netifaces.interfaces()
assert netifaces.ifaddresses("lo")[netifaces.AF_INET][0]["addr"] == "127.0.0.1"
assert isinstance(netifaces.gateways(), dict)

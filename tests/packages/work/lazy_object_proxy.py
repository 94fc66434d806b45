# debian: python3-lazy-object-proxy
import lazy_object_proxy
from lazy_object_proxy import cext

made = []
proxy = lazy_object_proxy.Proxy(lambda: made.append(1) or [3, 4])
assert not made and lazy_object_proxy.Proxy is cext.Proxy
assert proxy[1] == 4 and len(proxy) == 2 and made == [1]

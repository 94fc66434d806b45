# debian: python3-wrapt
# pypi: wrapt
import wrapt
from wrapt import _wrappers


@wrapt.decorator
def twice(wrapped, instance, args, kwargs):
    return 2 * wrapped(*args, **kwargs)


class A:
    @twice
    def f(self, x):
        """doc"""
        return x


assert A().f(4) == 8 and A.f.__doc__ == "doc" and _wrappers.ObjectProxy
proxy = wrapt.ObjectProxy([1, 2])
assert len(proxy) == 2 and isinstance(proxy, list) and proxy + [3] == [1, 2, 3]

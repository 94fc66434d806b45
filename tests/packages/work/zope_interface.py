# debian: python3-zope.interface
import zope.interface
from zope.interface import _zope_interface_coptimizations
from zope.interface.adapter import AdapterRegistry


class IName(zope.interface.Interface):
    def name():
        pass


@zope.interface.implementer(IName)
class Thing:
    def name(self):
        return "thing"


registry = AdapterRegistry()
registry.register([IName], IName, "", "adapter")
assert IName.providedBy(Thing()) and IName(Thing()).name() == "thing"
assert registry.lookup1(zope.interface.providedBy(Thing()), IName) == "adapter"
assert _zope_interface_coptimizations.LookupBase

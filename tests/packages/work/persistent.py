# debian: python3-persistent
import persistent
from persistent import cPersistence, cPickleCache


class Jar:
    def __init__(self):
        self.cache = cPickleCache.PickleCache(self, 10)
        self.changed = []

    def register(self, thing):
        self.changed.append(thing)

    def setstate(self, thing):
        thing.__setstate__({"x": 9})


class Thing(persistent.Persistent):
    pass


assert persistent.Persistent is cPersistence.Persistent
jar, thing = Jar(), Thing()
thing._p_jar, thing._p_oid = jar, b"\0" * 8
jar.cache[thing._p_oid] = thing
thing._p_deactivate()
assert thing._p_changed is None and thing.x == 9
thing.x = 10
assert jar.changed == [thing] and thing._p_changed

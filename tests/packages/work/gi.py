# debian: python3-gi gir1.2-glib-2.0
import gi

gi.require_version("GLib", "2.0")
from gi.repository import Gio, GLib, GObject


class Thing(GObject.Object):
    size = GObject.Property(type=int, default=3)

    @GObject.Signal(arg_types=(int,))
    def grown(self, by):
        pass


thing, seen = Thing(), []
thing.connect("grown", lambda _, by: seen.append(by))
thing.connect("notify::size", lambda *_: seen.append("size"))
thing.size = 8
thing.emit("grown", 5)
assert seen == ["size", 5] and thing.size == 8

value = GLib.Variant("(sa{sv})", ("x", {"k": GLib.Variant("i", 4)}))
assert value.unpack() == ("x", {"k": 4})
stream = Gio.MemoryInputStream.new_from_bytes(GLib.Bytes.new(b"bytes"))
assert stream.read_bytes(9, None).get_data() == b"bytes"

context = GLib.MainContext()
loop = GLib.MainLoop(context)
source = GLib.Idle()
source.set_callback(lambda *_: (loop.quit(), False)[1])
source.attach(context)
loop.run()

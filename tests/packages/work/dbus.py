# debian: python3-dbus
import dbus
import dbus.lowlevel

message = dbus.lowlevel.MethodCallMessage("a.b", "/c", "d.e", "F")
message.append(dbus.UInt32(7), {"k": dbus.Int16(-2)}, ["x", "y"], signature="ua{sn}as")
assert message.get_signature() == "ua{sn}as"
assert message.get_args_list() == [7, {"k": -2}, ["x", "y"]]
assert message.get_path() == "/c" and isinstance(message.get_args_list()[0], dbus.UInt32)
try:
    dbus.ObjectPath("no slash")
except ValueError:
    pass
else:
    raise AssertionError("a bad path was accepted")

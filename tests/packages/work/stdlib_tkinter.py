# debian: python3-tk
import tkinter

# Without a display there is still the interpreter, which is most of the extension.
tcl = tkinter.Tcl()
assert tcl.eval("expr {6 * 7}") == "42"
tcl.createcommand("from_python", lambda *words: "-".join(words))
assert tcl.eval("from_python a b c") == "a-b-c"
variable = tkinter.StringVar(tcl, "x")
tcl.eval("append %s yz" % variable)
assert variable.get() == "xyz"
assert tcl.splitlist("a {b c} d") == ("a", "b c", "d")

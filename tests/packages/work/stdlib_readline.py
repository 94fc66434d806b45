# debian: libpython3-stdlib
import os
import readline
import tempfile

readline.clear_history()
for i in range(50):
    readline.add_history("line %d" % i)
assert readline.get_current_history_length() == 50
assert readline.get_history_item(7) == "line 6"
readline.replace_history_item(6, "other")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "history")
    readline.write_history_file(path)
    readline.clear_history()
    assert readline.get_current_history_length() == 0
    readline.read_history_file(path)
assert readline.get_history_item(7) == "other"
readline.parse_and_bind("tab: complete")
readline.set_completer(lambda text, state: None)

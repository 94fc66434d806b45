# debian: python3-lupa
import lupa

lua = lupa.LuaRuntime()
assert lua.eval("1 + 2 * 3") == 7
assert lua.eval("function(f, n) return f(n) + 1 end")(lambda n: n * 2, 20) == 41
lua.execute("t = {}; for i = 1, 10 do t[i] = i * i end")
assert list(lua.globals().t.values()) == [i * i for i in range(1, 11)]
try:
    lua.execute("error('lua says no')")
except lupa.LuaError as e:
    assert "lua says no" in str(e)
else:
    raise AssertionError("the error was lost")

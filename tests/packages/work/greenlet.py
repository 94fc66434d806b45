# debian: python3-greenlet
# pypi: greenlet
import greenlet

trace = []


def body(n):
    for i in range(n):
        trace.append(greenlet.getcurrent().parent.switch(i))
    return "end"


child = greenlet.greenlet(body)
got = [child.switch(5)]
while not child.dead:
    got.append(child.switch("x"))
assert got == [0, 1, 2, 3, 4, "end"] and trace == ["x"] * 5


def fail():
    raise KeyError("from inside")


try:
    greenlet.greenlet(fail).switch()
except KeyError:
    pass
else:
    raise AssertionError("the error was lost")

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.function.Function;
import javaobjects.PyCallable;
import javaobjects.PyException;
import javaobjects.PyObject;
import javaobjects.PythonContext;

/** ObjectsTest PYTHON: what the objects of each side are on the other one. */
public final class ObjectsTest {
    private static PythonContext a;
    private static PythonContext b;

    private ObjectsTest() {}

    public static void main(String[] args) {
        a = new PythonContext(args[0]);
        b = new PythonContext(args[0]);
        values();
        identity();
        calls();
        exceptions();
        contexts();
        a.close();
        b.close();
        System.exit(Checks.failed > 0 ? 1 : 0);
    }

    private static PyObject in(PythonContext c, String expression) {
        return (PyObject) c.eval(expression);
    }

    // ---- values

    private static void values() {
        Checks.test(
                "values_are_copied",
                () -> {
                    PyObject same = in(a, "lambda x: x");
                    Object[] all = {null, true, 1L << 62, -1L, 0.5, "", "h\u00e9 \ud83d\ude00 \ud800 \0 x"};
                    for (Object o : all) Checks.check(o == null ? same.call(o) == null : o.equals(same.call(o)), o);
                    Checks.equal(7L, same.call(7));
                    Checks.equal(1.5, same.call(1.5f));
                    Checks.equal("1180591620717411303424", in(a, "1 << 70").toString());
                });
        Checks.test(
                "python_objects_have_items_attributes_and_iterators",
                () -> {
                    PyObject list = in(a, "[1, 'two', None]");
                    Checks.equal(3L, list.length());
                    list.setItem(0, 5);
                    List<Object> found = new ArrayList<>();
                    for (Object o : list) found.add(o);
                    Checks.equal("[5, two, null]", found.toString());
                    PyObject type = in(a, "type('T', (), {})");
                    type.setAttr("x", list);
                    Checks.same(list, type.getAttr("x"));
                    Checks.equal(in(a, "(1, 2)"), in(a, "(1, 2.0)"));
                    Checks.equal(in(a, "(1, 2)").hashCode(), in(a, "(1, 2.0)").hashCode());
                    Checks.check(!in(a, "[1]").equals("[1]"), "a list is no string");
                });
    }

    // ---- identity

    private static void identity() {
        Checks.test(
                "a_python_object_has_one_proxy",
                () -> {
                    a.exec("kept = [object(), object()]");
                    PyObject kept = in(a, "kept");
                    PyObject first = (PyObject) kept.getItem(0);
                    System.gc();
                    Checks.same(first, kept.getItem(0));
                    Checks.check(first != kept.getItem(1), "two objects have two proxies");
                    a.exec("del kept");
                });
        Checks.test(
                "a_java_object_has_one_shell",
                () -> {
                    Thing thing = new Thing(1);
                    Checks.equal(true, in(a, "lambda x, y: x is y").call(thing, thing));
                    PyObject number = in(a, "id");
                    Object shell = number.call(thing);
                    Checks.collect(a);
                    Checks.equal(shell, number.call(thing));
                    Checks.equal(false, in(a, "lambda x, y: x is y").call(thing, new Thing(1)));
                });
        Checks.test(
                "what_goes_home_is_the_object_itself",
                () -> {
                    PyObject list = in(a, "[]");
                    Checks.equal("list", in(a, "lambda x: type(x).__name__").call(list));
                    Checks.same(list, in(a, "lambda x: x").call(list));
                    Thing thing = new Thing(2);
                    Checks.same(thing, in(a, "lambda x: x").call(thing));
                    list.invoke("append", thing);
                    Checks.same(thing, list.getItem(0));
                    Checks.same(list, ((PyCallable) args -> args[0]).call(list));
                    Checks.equal(true, in(a, "lambda f, x: f(x) is x").call((PyCallable) args -> args[0], list));
                });
    }

    // ---- calls

    private static void calls() {
        Checks.test(
                "lambdas_are_callables",
                () -> {
                    Function<Object, Object> twice = x -> (Long) x * 2;
                    Checks.equal(42L, in(a, "lambda f: f(21)").call(twice));
                    BiFunction<Object, Object, Object> concat = (x, y) -> "" + x + y;
                    PyObject both = in(a, "lambda f, g: f(str(list(map(g, [1, 2]))), 'x')");
                    Checks.equal("[2, 4]x", both.call(concat, twice));
                    Checks.equal(3L, in(a, "lambda f: f(1, 2, 3)").call((PyCallable) args -> args.length));
                    PyObject items = in(a, "['ccc', 'a', 'bb']");
                    Function<Object, Object> length = s -> ((String) s).length();
                    in(a, "lambda items, key: items.sort(key=key)").call(items, length);
                    Checks.equal("['a', 'bb', 'ccc']", items.toString());
                });
        Checks.test(
                "java_objects_have_methods_and_fields",
                () -> {
                    Thing thing = new Thing(40);
                    Checks.equal(42L, in(a, "lambda t: t.plus(2)").call(thing));
                    Checks.equal(42L, in(a, "lambda t: getattr(t, type('S', (str,), {})('plus'))(2)").call(thing));
                    Checks.equal("Thing 40", in(a, "str").call(thing));
                    in(a, "lambda t, o: setattr(t, 'other', o)").call(thing, in(a, "[7]"));
                    Checks.equal("[7]", thing.other.toString());
                    Checks.equal(true, in(a, "lambda t: t.other == [7] and t.id == 40").call(thing));
                    Checks.equal(true, in(a, "lambda x, y: x == y and hash(x) == hash(y) and x is not y")
                            .call(new ArrayList<>(List.of(1)), new ArrayList<>(List.of(1))));
                    Checks.equal("no", in(a, "lambda t: getattr(t, 'nothing', 'no')").call(thing));
                });
        Checks.test(
                "threads_of_python_call_java",
                () -> {
                    a.exec(
                            "import threading\n"
                                    + "def in_threads(n, f):\n"
                                    + "    ts = [threading.Thread(target=f, args=(i,)) for i in range(n)]\n"
                                    + "    for t in ts: t.start()\n"
                                    + "    for t in ts: t.join()\n");
                    AtomicLong sum = new AtomicLong();
                    PyObject add = in(a, "lambda a, b: a + b");
                    Function<Object, Object> f = x -> sum.addAndGet((Long) add.call(x, 1));
                    in(a, "in_threads").call(8, f);
                    Checks.equal(36L, sum.get());
                });
        Checks.test(
                "what_a_thread_has_in_python_ends_with_it",
                () -> {
                    AtomicLong ended = new AtomicLong();
                    a.exec(
                            "import threading\n"
                                    + "local = threading.local()\n"
                                    + "class OfThread:\n"
                                    + "    def __init__(self, f): self.f = f\n"
                                    + "    def __del__(self): self.f()\n"
                                    + "def keep(f): local.x = OfThread(f)\n");
                    PyObject keep = in(a, "keep");
                    PyCallable f = args -> ended.incrementAndGet();
                    for (int i = 0; i < 4; i++) {
                        Thread t = new Thread(() -> keep.call(f));
                        t.start();
                        t.join();
                    }
                    Checks.until("4 have ended", () -> ended.get() == 4, a);
                    AtomicLong atDetach = new AtomicLong();
                    Thread t = new Thread(() -> {
                        keep.call(f);
                        a.detach();
                        atDetach.set(ended.get());
                    });
                    t.start();
                    t.join();
                    Checks.equal(5L, atDetach.get());
                });
        Checks.test(
                "endless_recursion_through_both_languages_is_an_exception",
                () -> {
                    PyObject call = in(a, "lambda f: f()");
                    PyCallable[] f = new PyCallable[1];
                    f[0] = args -> call.call(f[0]);
                    Thread[] threads = new Thread[2];
                    Throwable[] thrown = new Throwable[2];
                    for (int i = 0; i < 2; i++) {
                        int at = i;
                        threads[i] = new Thread(null, () -> {
                            try {
                                f[0].call();
                            } catch (Throwable e) {
                                thrown[at] = e;
                            }
                        }, "deep", (1L << 20) << i * 6);
                        threads[i].start();
                    }
                    for (Thread t : threads) t.join();
                    for (Throwable t : thrown)
                        if (!(t instanceof StackOverflowError)) Checks.equal("RecursionError", ((PyException) t).type);
                });
        Checks.test(
                "endless_recursion_in_python_is_an_exception_on_a_large_stack",
                () -> {
                    PyObject sort = in(a, "lambda f: sorted([0], key=lambda _: f(f))");
                    Object[] type = new Object[1];
                    Checks.Test test = () -> type[0] = raisedBy(() -> sort.call(sort)).type;
                    Thread thread = new Thread(null, () -> Checks.run(test), "large", 8 << 20);
                    thread.start();
                    thread.join();
                    Checks.equal("RecursionError", type[0]);
                });
        Checks.test(
                "many_arguments_pass",
                () -> {
                    Object[] all = new Object[1000];
                    for (int i = 0; i < all.length; i++) all[i] = new Thing(i);
                    Object result = in(a, "lambda *all: (lambda f: f(*all))").call(all);
                    Checks.equal(999L, ((PyObject) result).call((PyCallable) x -> ((Thing) x[999]).id));
                });
        Checks.test(
                "deep_circles_of_calls_return",
                () -> {
                    PyObject[] down = new PyObject[2];
                    PyCallable back = args -> (Long) args[0] == 0 ? 0L
                            : down[(int) ((Long) args[0] % 2)].call(args[1], (Long) args[0] - 1);
                    down[0] = in(a, "lambda f, n: f(n, f) + 1");
                    down[1] = in(b, "lambda f, n: f(n, f) + 1");
                    Checks.equal(40L, back.call(40L, back));
                });
    }

    // ---- exceptions

    private static PyException raisedBy(Checks.Test test) throws Throwable {
        try {
            test.run();
        } catch (PyException e) {
            return e;
        }
        throw new AssertionError("nothing was raised");
    }

    private static void exceptions() {
        Checks.test(
                "python_exceptions_have_type_message_and_traceback",
                () -> {
                    a.exec("import json\ndef bad(): return json.loads('{')");
                    PyException e = raisedBy(() -> in(a, "bad").call());
                    Checks.equal("json.decoder.JSONDecodeError", e.type);
                    Checks.check(e.getMessage().contains("Expecting property name"), e);
                    Checks.check(e.traceback.contains("in bad\n"), e.traceback);
                    Checks.check(e.traceback.contains("json/decoder.py"), e.traceback);
                    Checks.equal(1L, e.value.getAttr("pos"));
                });
        Checks.test(
                "java_exceptions_are_python_exceptions_and_come_back_as_themselves",
                () -> {
                    IllegalArgumentException thrown = new IllegalArgumentException("wrong");
                    PyCallable f = args -> {
                        throw thrown;
                    };
                    a.exec(
                            "import javaobjects\n"
                                    + "def caught(f):\n"
                                    + "    try: f()\n"
                                    + "    except javaobjects.Error as e:\n"
                                    + "        return [str(e), e.java, e.java.getMessage()]\n");
                    PyObject caught = (PyObject) in(a, "caught").call(f);
                    Checks.equal("java.lang.IllegalArgumentException: wrong", caught.getItem(0));
                    Checks.same(thrown, caught.getItem(1));
                    Checks.equal("wrong", caught.getItem(2));
                    try {
                        in(a, "lambda f: f()").call(f);
                        throw new AssertionError("nothing was thrown");
                    } catch (IllegalArgumentException e) {
                        Checks.same(thrown, e);
                    }
                });
        Checks.test(
                "python_exceptions_that_go_through_java_come_home_as_themselves",
                () -> {
                    PyObject bad = in(a, "lambda: {}['missing']");
                    a.exec(
                            "def through(f):\n"
                                    + "    try: f()\n"
                                    + "    except KeyError as e: return e\n");
                    PyException[] seen = new PyException[1];
                    Object error = in(a, "through").call((PyCallable) args -> {
                        try {
                            return bad.call();
                        } catch (PyException e) {
                            seen[0] = e;
                            throw e;
                        }
                    });
                    Checks.same(seen[0].value, error);
                });
        Checks.test(
                "wrong_uses_raise",
                () -> {
                    Thing thing = new Thing(1);
                    Checks.equal("TypeError", raisedBy(() -> in(a, "lambda f: f(x=1)").call(thing)).type);
                    Checks.equal("AttributeError", raisedBy(() -> in(a, "lambda t: t.nothing").call(thing)).type);
                    Checks.equal("TypeError", raisedBy(() -> in(a, "[]").hashCode()).type);
                    a.exec("def odd(o): e = javaobjects.Error('odd'); e.java = o; raise e");
                    Checks.equal("javaobjects.Error: odd", raisedBy(() -> in(a, "odd").call(thing)).getMessage());
                    Checks.equal("odd", raisedBy(() -> in(a, "odd").call(1)).value.toString());
                    try {
                        in(a, "lambda t: t.plus('x')").call(new Thing(1));
                        throw new AssertionError("nothing was thrown");
                    } catch (IllegalArgumentException e) {
                        Checks.equal("no plus takes [x]", e.getMessage());
                    }
                });
    }

    // ---- contexts

    private static void contexts() {
        Checks.test(
                "an_object_of_another_context_is_a_java_object",
                () -> {
                    PyObject list = in(a, "[1, 2]");
                    Checks.equal("Object", in(b, "lambda x: type(x).__name__").call(list));
                    Checks.equal(2L, in(b, "lambda x: x.length()").call(list));
                    Checks.equal(3L, in(b, "lambda f: f(1, 2)").call(in(a, "lambda x, y: x + y")));
                    PyObject box = in(b, "[]");
                    box.invoke("append", list);
                    Checks.same(list, box.getItem(0));
                    Checks.equal(true, in(a, "lambda f, x: f(x) is x").call(in(b, "lambda x: x"), list));
                });
        Checks.test(
                "exceptions_go_through_two_contexts",
                () -> {
                    PyException e = raisedBy(() -> in(b, "lambda f: f()").call(in(a, "lambda: 1 / 0")));
                    Checks.equal("ZeroDivisionError", e.type);
                    Checks.same(a, e.value.context());
                });
    }
}

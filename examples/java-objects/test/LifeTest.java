import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import javaobjects.PyCallable;
import javaobjects.PyObject;
import javaobjects.PythonContext;

/** LifeTest PYTHON [control]: who lives how long. With "control", only what finds that objects die early. */
public final class LifeTest {
    private static PythonContext a;
    private static PythonContext b;
    private static String python;

    private LifeTest() {}

    public static void main(String[] args) {
        python = args[0];
        a = new PythonContext(python);
        b = new PythonContext(python);
        if (args.length > 1) {
            Checks.test("objects_that_python_refers_to_live", LifeTest::handedOut);
            System.exit(Checks.failed > 0 ? 1 : 0);
        }
        deaths();
        circles();
        contexts();
        Checks.test("all_links_end", LifeTest::nothingIsLeft);
        ends();
        System.exit(Checks.failed > 0 ? 1 : 0);
    }

    private static PyObject in(PythonContext c, String expression) {
        return (PyObject) c.eval(expression);
    }

    // ---- deaths

    private static void deaths() {
        Checks.test("objects_that_python_refers_to_live", LifeTest::handedOut);
        Checks.test(
                "python_objects_end_after_their_proxies",
                () -> {
                    a.exec("ended = []\nclass Ending:\n    def __del__(self): ended.append(1)");
                    List<Object> kept = new ArrayList<>();
                    for (int i = 0; i < 100; i++) kept.add(a.eval("Ending()"));
                    Checks.collect(a);
                    Checks.equal(0L, a.eval("len(ended)"));
                    kept.clear();
                    Checks.until("100 end", () -> a.eval("len(ended)").equals(100L), a);
                });
        Checks.test(
                "finalisers_of_python_call_java",
                () -> {
                    AtomicLong calls = new AtomicLong();
                    in(a, "lambda f: setattr(Ending, '__del__', lambda self: f())")
                            .call((PyCallable) args -> calls.incrementAndGet());
                    for (int i = 0; i < 10; i++) a.eval("[Ending()]");
                    Checks.until("10 calls", () -> calls.get() == 10, a);
                    a.exec("del Ending");
                });
        Checks.test(
                "java_objects_die_after_python_has_let_go",
                () -> {
                    WeakReference<Thing> weak = keepOne();
                    Checks.collect(a);
                    Checks.check(weak.get() != null, "Python keeps it");
                    a.exec("kept.clear()");
                    Checks.until("it dies", () -> weak.get() == null, a);
                });
        Checks.test("java_collects_for_heavy_natives", LifeTest::heavy);
    }

    /**
     * The negative control fails here: nothing but Python refers to the objects. Java collects before the table looks
     * for circles, since the proxy of the list would then keep what the list refers to.
     */
    private static void handedOut() throws Exception {
        PyObject list = in(a, "[]");
        PyObject append = (PyObject) list.getAttr("append");
        for (int i = 0; i < 1000; i++) append.call(new Thing(i));
        System.gc();
        Thread.sleep(50);
        for (int i = 0; i < 3; i++) Checks.collect(a);
        for (int i = 0; i < 1000; i++) Checks.equal((long) i, ((Thing) list.getItem(i)).id);
    }

    private static WeakReference<Thing> keepOne() {
        Thing thing = new Thing(3);
        a.exec("kept = []");
        in(a, "kept.append").call(thing);
        return new WeakReference<>(thing);
    }

    /** Two gigabytes by and by, of which Java sees a few proxies. */
    private static void heavy() throws Exception {
        PyObject make = in(a, "bytes");
        for (int i = 0; i < 200; i++) {
            make.call(10 << 20);
            Thread.sleep(5);
        }
        long rss = Soak.rss();
        Checks.check(rss < 1500, rss + " MB");
    }

    // ---- circles

    private static void circle(String name, String makeHolder) {
        Checks.test(
                name,
                () -> {
                    List<WeakReference<Object>> all = new ArrayList<>();
                    for (int i = 0; i < 50; i++) all.add(circleBy(makeHolder));
                    System.gc();
                    for (WeakReference<Object> w : all) Checks.check(w.get() != null, "nobody has looked for circles");
                    a.exec("import gc; gc.collect()"); // which does not track tuples of what it does not track
                    Checks.until("all die", () -> all.stream().allMatch(w -> w.get() == null), a);
                });
    }

    private static WeakReference<Object> circleBy(String makeHolder) {
        Thing thing = new Thing(4);
        thing.other = in(a, makeHolder).call(thing);
        return new WeakReference<>(thing);
    }

    private static void circles() {
        circle("circles_by_an_attribute_die", "lambda o: type('T', (), {'o': o})()");
        circle("circles_by_a_dict_die", "lambda o: {'o': o}");
        circle("circles_by_a_tuple_die", "lambda o: (o,)");
        circle("circles_by_a_list_die", "lambda o: [[[o]]]");
        circle("circles_by_a_closure_die", "lambda o: lambda: o");
        circle("circles_by_a_bound_method_die", "lambda o: [o.plus]");
        Checks.test("circles_that_weak_references_of_python_reach_live", LifeTest::weaklyReferred);
        Checks.test(
                "circles_that_are_reached_live",
                () -> {
                    Thing thing = new Thing(5);
                    PyObject list = in(a, "[[]]");
                    list.invoke("append", thing);
                    thing.other = list;
                    thing = null;
                    for (int i = 0; i < 3; i++) Checks.collect(a);
                    Checks.same(list, ((Thing) list.getItem(1)).other);
                });
    }

    /** By way of a weak reference Python code gets an object that nobody has handed out. */
    private static void weaklyReferred() throws Exception {
        a.exec(
                "import weakref\n"
                        + "class Node: pass\n"
                        + "def weakly(o):\n"
                        + "    global weak\n"
                        + "    n = Node()\n"
                        + "    n.o = o\n"
                        + "    weak = weakref.ref(n)\n"
                        + "    return n\n");
        circleBy("weakly");
        a.collect();
        a.exec("strong = weak()");
        System.gc();
        Thread.sleep(50);
        Checks.collect(a);
        Checks.equal(4L, a.eval("strong.o.id"));
        a.exec("del strong");
        Checks.equal(4L, a.eval("weak().o.id"));
        a.exec("weak = weakref.ref(Node)");
    }

    // ---- contexts

    private static void contexts() {
        Checks.test(
                "objects_that_two_contexts_repeat_live",
                () -> {
                    PyObject ofA = in(a, "[]");
                    PyObject ofB = in(b, "[]");
                    ofA.invoke("append", new Thing(8));
                    ofB.invoke("append", ofA);
                    Checks.collect(a, b);
                    Checks.equal(1L, ofB.length()); // what B has repeated is undone, and not what A has
                    System.gc();
                    Thread.sleep(50);
                    a.collect();
                    Checks.equal(8L, ((Thing) ofA.getItem(0)).id);
                });
        Checks.test(
                "circles_through_two_contexts_die",
                () -> {
                    List<WeakReference<Object>> all = new ArrayList<>();
                    for (int i = 0; i < 20; i++) all.add(circleOfTwo());
                    Checks.until("all die", () -> all.stream().allMatch(w -> w.get() == null), a, b);
                });
    }

    private static WeakReference<Object> circleOfTwo() {
        PyObject ofA = in(a, "[]");
        PyObject ofB = in(b, "[]");
        ofA.invoke("append", ofB);
        ofB.invoke("append", ofA);
        return new WeakReference<>(ofA);
    }

    // ---- ends

    /** But those of lambdas that capture nothing, which Java keeps for good. */
    private static void nothingIsLeft() {
        for (PythonContext c : new PythonContext[] {a, b}) {
            c.exec("import gc\nfor n in [n for n in globals() if n[0] != '_' and n != 'gc']: del globals()[n]");
            Checks.until("links end: " + c.count(), () -> c.count().links() <= 8 && c.count().strong() == 0, a, b);
        }
    }

    private static void ends() {
        Checks.test(
                "a_context_closes_with_live_objects_of_both_sides",
                () -> {
                    PythonContext c = new PythonContext(python);
                    PyObject list = in(c, "[]");
                    WeakReference<Thing> weak = keepIn(list);
                    PyObject foreign = in(a, "[]");
                    foreign.invoke("append", list);
                    c.exec(
                            "class T:\n"
                                    + "    def __del__(self):\n"
                                    + "        try: T.f()\n"
                                    + "        except ReferenceError: pass\n");
                    in(c, "T").setAttr("f", (PyCallable) args -> null);
                    PyObject t = in(c, "T()");
                    c.close();
                    c.close();
                    Checks.Test[] uses = {list::length, list::toString, () -> c.eval("1"), t::hashCode};
                    for (Checks.Test use : uses)
                        try {
                            use.run();
                            throw new AssertionError("it can be used");
                        } catch (IllegalStateException e) {
                            Checks.check(e.getMessage().contains("has been closed"), e);
                        }
                    Checks.same(list, foreign.getItem(0));
                    try {
                        in(a, "lambda x: x.length()").call(list);
                        throw new AssertionError("it can be used");
                    } catch (IllegalStateException e) {
                        Checks.check(e.getMessage().contains("has been closed"), e);
                    }
                    Checks.until("objects of a closed context die", () -> weak.get() == null, a);
                });
        Checks.test(
                "contexts_close_under_threads_that_use_them",
                () -> {
                    for (int i = 0; i < 5; i++) closeUnderThreads(20 * i);
                });
        Checks.test(
                "a_thread_inside_cannot_close",
                () -> {
                    try {
                        in(b, "lambda f: f()").call((PyCallable) args -> {
                            b.close();
                            return null;
                        });
                        throw new AssertionError("it was closed");
                    } catch (IllegalStateException e) {
                        Checks.check(e.getMessage().contains("by a thread that is inside"), e);
                    }
                    Checks.equal(2L, b.eval("1 + 1"));
                });
        Checks.test(
                "a_daemon_of_python_that_is_in_java_outlives_its_context",
                () -> {
                    PythonContext c = new PythonContext(python);
                    CountDownLatch there = new CountDownLatch(1);
                    CountDownLatch leave = new CountDownLatch(1);
                    c.exec("import threading\ndef start(f): threading.Thread(target=f, daemon=True).start()");
                    in(c, "start").call((PyCallable) args -> {
                        there.countDown();
                        leave.await();
                        return new Thing(7);
                    });
                    there.await();
                    c.close();
                    leave.countDown();
                    Thread.sleep(100);
                });
        Checks.test(
                "code_that_exits_ends_its_context_alone",
                () -> {
                    PythonContext c = new PythonContext(python);
                    PyObject list = in(c, "[]");
                    try {
                        c.exec("import os; os._exit(3)");
                        throw new AssertionError("it has not");
                    } catch (IllegalStateException e) {
                        Checks.check(e.getMessage().contains("3"), e);
                    }
                    try {
                        list.length();
                        throw new AssertionError("it can be used");
                    } catch (IllegalStateException e) {
                        // as it should
                    }
                    c.close();
                });
        Checks.test(
                "contexts_close",
                () -> {
                    a.close();
                    b.close();
                });
    }

    /** Each thread goes on until it is told that the context has been closed, also from within Python code. */
    private static void closeUnderThreads(int after) throws Exception {
        PythonContext c = new PythonContext(python);
        PyObject box = in(c, "[]");
        PyObject call = in(c, "lambda f, o: f(o)");
        List<Throwable> ends = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Thread t = new Thread(() -> {
                try {
                    while (true) {
                        box.invoke("append", new Thing(1));
                        call.call((PyCallable) args -> ((PyObject) args[0]).length(), box);
                        if (box.length() > 1000) box.invoke("clear");
                    }
                } catch (Throwable e) {
                    ends.add(e);
                }
            });
            threads.add(t);
            t.start();
        }
        Thread.sleep(after);
        System.gc();
        c.close();
        for (Thread t : threads) t.join();
        for (Throwable e : ends)
            if (!(e instanceof IllegalStateException) || !e.getMessage().contains("has been closed"))
                throw new AssertionError(e);
    }

    private static WeakReference<Thing> keepIn(PyObject list) {
        Thing thing = new Thing(6);
        list.invoke("append", thing);
        return new WeakReference<>(thing);
    }
}

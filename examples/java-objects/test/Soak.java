import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import javaobjects.PyCallable;
import javaobjects.PyException;
import javaobjects.PyObject;
import javaobjects.PythonContext;

/** Soak PYTHON SECONDS THREADS OBJECTS: objects by the number each way, then threads at random in two contexts. */
public final class Soak {
    private static final String CODE =
            "class Box:\n"
                    + "    def __init__(self, value): self.value = value; self.closure = lambda: value\n"
                    + "def apply(f, *args): return f(*args)\n"
                    + "def fail(f):\n"
                    + "    try: f()\n"
                    + "    except Exception as e: raise ValueError('again') from e\n";

    private static final int SHARED = 256;

    private final PythonContext[] contexts = new PythonContext[2];
    private final PyObject[] box = new PyObject[2];
    private final PyObject[] apply = new PyObject[2];
    private final PyObject[] fail = new PyObject[2];
    /** Boxes that any thread takes and leaves, each with a Thing that nothing but the box may refer to. */
    private final AtomicReferenceArray<PyObject> shared = new AtomicReferenceArray<>(SHARED);

    private final AtomicLong operations = new AtomicLong();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private Soak(String python) {
        for (int i = 0; i < 2; i++) {
            contexts[i] = new PythonContext(python);
            contexts[i].exec(CODE);
            box[i] = (PyObject) contexts[i].eval("Box");
            apply[i] = (PyObject) contexts[i].eval("apply");
            fail[i] = (PyObject) contexts[i].eval("fail");
        }
    }

    public static void main(String[] args) throws Exception {
        Soak soak = new Soak(args[0]);
        int objects = Integer.parseInt(args[3]);
        Checks.test("objects_by_the_number", () -> soak.byNumber(objects));
        Checks.test("threads_at_random", () -> soak.atRandom(Integer.parseInt(args[1]), Integer.parseInt(args[2])));
        Checks.test("all_links_of_the_soak_end", soak::end);
        System.exit(Checks.failed > 0 ? 1 : 0);
    }

    /** Megabytes. */
    static long rss() throws java.io.IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024;
        return 0;
    }

    private void report(String when) throws Exception {
        System.gc();
        Thread.sleep(50);
        Runtime r = Runtime.getRuntime();
        System.out.printf(
                "%s: heap %d MB, RSS %d MB, links %d and %d, %d operations%n",
                when,
                r.totalMemory() - r.freeMemory() >> 20,
                rss(),
                contexts[0].count().links(),
                contexts[1].count().links(),
                operations.get());
        System.out.flush();
    }

    // ---- by the number

    private void byNumber(int objects) throws Exception {
        PythonContext c = contexts[0];
        long before = c.count().links();
        report("start");
        List<Object> proxies = new ArrayList<>();
        for (Object o : (PyObject) c.eval("(Box(i) for i in range(" + objects + "))")) proxies.add(o);
        Checks.check(c.count().links() >= before + objects, c.count());
        report(objects + " proxies");
        for (int i = 0; i < objects; i += objects / 100)
            Checks.equal((long) i, ((PyObject) proxies.get(i)).getAttr("value"));
        proxies.clear();
        Checks.until("proxies end: " + c.count(), () -> c.count().links() <= before + 8, c);
        report("none");
        PyObject list = (PyObject) c.eval("[]");
        PyObject append = (PyObject) list.getAttr("append");
        for (int i = 0; i < objects; i++) append.call(new Thing(i));
        Checks.check(c.count().strong() >= objects, c.count());
        report(objects + " shells");
        for (int i = 0; i < objects; i += objects / 100) Checks.equal((long) i, ((Thing) list.getItem(i)).id);
        list.invoke("clear");
        Checks.until("shells end: " + c.count(), () -> c.count().links() <= before + 8, c);
        report("none");
    }

    // ---- at random

    private void atRandom(int seconds, int threads) throws Exception {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Random random = new Random(i);
            Thread t = new Thread(() -> work(random, end));
            all.add(t);
            t.start();
        }
        report("begin");
        for (int i = 1; i <= 10; i++) {
            Thread.sleep(Math.max(0, (end - System.nanoTime()) / 1_000_000 / (11 - i)));
            report(i * 10 + " %");
        }
        for (Thread t : all) t.join();
        if (failure.get() != null) throw new AssertionError(failure.get());
    }

    private void work(Random random, long end) {
        try {
            while (System.nanoTime() < end && failure.get() == null)
                for (int i = 0; i < 100; i++) {
                    step(random);
                    operations.incrementAndGet();
                }
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        }
    }

    private void step(Random random) throws Exception {
        int in = random.nextInt(2);
        int at = random.nextInt(SHARED);
        switch (random.nextInt(10)) {
            case 0:
            case 1:
                shared.set(at, make(random, in));
                break;
            case 2:
            case 3:
                look(shared.get(at));
                break;
            case 4:
                move(random, at, in);
                break;
            case 5:
                long n = random.nextInt();
                Checks.equal(n + 1, apply[in].call((PyCallable) a -> (Long) a[0] + 1, n));
                break;
            case 6:
                there(random, in);
                break;
            case 7:
                fail(in);
                break;
            case 8:
                circle(random, in);
                break;
            default:
                Checks.equal(1L, apply[in].call(apply[1 - in], (PyCallable) a -> a.length, "one"));
        }
    }

    private PyObject make(Random random, int in) {
        return (PyObject) box[in].call(new Thing(random.nextInt(1000)));
    }

    private static void look(PyObject found) {
        if (found == null) return;
        Object value = found.getAttr("value");
        Checks.same(value, ((PyObject) found.getAttr("closure")).call());
        if (value instanceof Thing) Checks.equal(((Thing) value).id + 1, ((Thing) value).plus(1));
        else look((PyObject) value);
    }

    /** A box gets into another box, often of another context. */
    private void move(Random random, int at, int in) {
        PyObject found = shared.getAndSet(at, null);
        if (found == null) return;
        PyObject outer = (PyObject) box[in].call(found);
        Checks.same(found, outer.getAttr("value"));
        shared.set(random.nextInt(SHARED), random.nextInt(3) == 0 ? found : outer);
    }

    /** There and back through both contexts. */
    private void there(Random random, int in) {
        Thing thing = new Thing(random.nextInt());
        PyObject own = (PyObject) box[in].call(thing);
        PyCallable value = b -> ((PyObject) b[0]).getAttr("value");
        Object result =
                apply[in].call((PyCallable) a -> apply[1 - in].call(value, a[0]), own);
        Checks.same(thing, result);
    }

    private void fail(int in) {
        IllegalStateException thrown = new IllegalStateException("first");
        try {
            fail[in].call((PyCallable) a -> {
                throw thrown;
            });
            throw new AssertionError("nothing was raised");
        } catch (PyException e) {
            Checks.equal("ValueError", e.type);
            Checks.same(thrown, ((PyObject) e.value.getAttr("__cause__")).getAttr("java"));
        }
    }

    private void circle(Random random, int in) {
        Thing thing = new Thing(random.nextInt(1000));
        PyObject holder = (PyObject) box[in].call(thing);
        thing.other = random.nextBoolean() ? holder : box[1 - in].call(holder);
        if (random.nextInt(4) == 0) shared.set(random.nextInt(SHARED), holder);
    }

    // ---- the end

    private void end() throws Exception {
        for (int i = 0; i < SHARED; i++) shared.set(i, null);
        Checks.until(
                "links end: " + contexts[0].count() + contexts[1].count(),
                () -> contexts[0].count().links() <= 8 && contexts[1].count().links() <= 8,
                contexts);
        report("end");
        for (PythonContext c : contexts) c.close();
    }
}

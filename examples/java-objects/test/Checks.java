import java.util.function.BooleanSupplier;
import javaobjects.PyObject;
import javaobjects.PythonContext;

/** What the tests of this folder share: verdicts, and waiting for collectors. */
final class Checks {
    interface Test {
        void run() throws Throwable;
    }

    static int failed;

    private Checks() {}

    static void test(String name, Test test) {
        try {
            test.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failed++;
            System.out.println("not ok " + name);
            e.printStackTrace(System.out);
        }
        System.out.flush();
    }

    /** For code that may not throw what a test may. */
    static void run(Test test) {
        try {
            test.run();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    static void check(boolean holds, Object what) {
        if (!holds) throw new AssertionError(what);
    }

    static void same(Object expected, Object found) {
        if (expected != found) throw new AssertionError("not " + expected + ", but " + found);
    }

    static void equal(Object expected, Object found) {
        if (!expected.equals(found)) throw new AssertionError("not " + expected + ", but " + found);
    }

    static PyObject object(Object o) {
        return (PyObject) o;
    }

    /** Has all collectors at work: Java's, Python's, and the table's look for circles. */
    static void collect(PythonContext... contexts) {
        for (PythonContext c : contexts) c.collect();
        System.gc();
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        for (PythonContext c : contexts) c.exec("import gc; gc.collect()");
    }

    static void until(String what, BooleanSupplier holds, PythonContext... contexts) {
        for (int i = 0; i < 100; i++) {
            collect(contexts);
            if (holds.getAsBoolean()) return;
        }
        throw new AssertionError(what);
    }
}

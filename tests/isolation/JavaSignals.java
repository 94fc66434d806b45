import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import sun.misc.Signal;

/**
 * A JVM's use of signals before, while and after there are contexts with handlers of their own: handlers,
 * null checks and stack overflows of compiled code, and what SIGTERM does.
 *
 * <p>java JavaSignals ADDON [share]: with "share" contexts have the process's handlers, and take the JVM's.
 */
public class JavaSignals {
    private static final String[] SIGNALS = {"HUP", "USR2", "WINCH", "INT"};
    private static final Map<String, Boolean> seen = new ConcurrentHashMap<>();
    private static int[] nothing;

    private static native void step(String name);

    private static void expectAll(String when, int turns) throws InterruptedException {
        seen.clear();
        for (String name : SIGNALS) {
            Signal.raise(new Signal(name));
        }
        for (int i = 0; i < turns && seen.size() < SIGNALS.length; i++) {
            Thread.sleep(10);
        }
        if (seen.size() < SIGNALS.length) {
            throw new IllegalStateException(when + " Java's handlers have run for: " + seen.keySet());
        }
    }

    private static int first(int[] array) {
        return array[0];
    }

    private static int depth(int n) {
        return depth(n + 1) + 1;
    }

    /** The compiler leaves null checks to the processor where they have not failed yet. */
    private static void fault() {
        final int[] one = {1};
        int caught = 0;

        for (int i = 0; i < 200_000; i++) {
            caught += first(one);
        }
        for (int i = 0; i < 3; i++) {
            try {
                first(nothing);
            } catch (NullPointerException e) {
                caught++;
            }
        }
        try {
            depth(0);
        } catch (StackOverflowError e) {
            caught++;
        }
        if (caught != 200_004) {
            throw new IllegalStateException("not every fault became an exception");
        }
    }

    private static void faultOnThreads() throws InterruptedException {
        final Thread other = new Thread(JavaSignals::fault);

        other.start();
        fault();
        other.join();
    }

    private static void useContext(boolean share) throws InterruptedException {
        step(share ? "open with the host's signals" : "open");
        expectAll("with a context", share ? 50 : 500);
        step("expect all");
        faultOnThreads();
        seen.clear();
        step("send own");
        Thread.sleep(100);
        if (!seen.isEmpty()) {
            throw new IllegalStateException("Java's handlers have run for the context's own: " + seen.keySet());
        }
    }

    public static void main(String[] args) throws InterruptedException {
        System.load(args[0]);
        for (String name : SIGNALS) {
            Signal.handle(new Signal(name), signal -> seen.put(signal.getName(), true));
        }
        expectAll("before contexts", 500);
        faultOnThreads();
        for (int i = 0; i < 3; i++) {
            useContext(args.length > 1);
            step("close");
            expectAll("after a context", 500);
            faultOnThreads();
        }
        useContext(false);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("Java has had its signals")));
        Signal.raise(new Signal("TERM"));
        Thread.sleep(10_000);
    }
}

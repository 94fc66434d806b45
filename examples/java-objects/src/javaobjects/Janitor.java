package javaobjects;

import java.lang.ref.Reference;
import java.lang.ref.WeakReference;

/** The thread that tells tables of links what has died. */
final class Janitor {
    private Janitor() {}

    static {
        Thread thread = new Thread(Janitor::run, "javaobjects-janitor");
        thread.setDaemon(true);
        thread.start();
    }

    /** Starts it. */
    static void begin() {}

    /** Has it call Java's collector, as Python objects have become heavy. */
    static void collect() {
        new WeakReference<>(Ref.DEAD, Ref.DEAD).enqueue();
    }

    private static void run() {
        while (true) {
            try {
                Reference<?> dead = Ref.DEAD.remove();
                if (dead instanceof Ref) ((Ref) dead).links.died((Ref) dead);
                else System.gc();
            } catch (InterruptedException e) {
                // It is nobody's to interrupt.
            }
        }
    }
}

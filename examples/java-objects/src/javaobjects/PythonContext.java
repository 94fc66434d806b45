package javaobjects;

import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * A CPython of its own in this process. Any thread may use it, and any number at a time, as far as its GIL allows.
 *
 * <p>null, Boolean, whole numbers, floating-point numbers and strings become Python's own, and Python's become those
 * (Long, Double). Any other object stays where it is, and has a proxy on the other side. That goes for a
 * {@link PyObject} of another context too: here it is a Java object, which can be called, and has the methods of its
 * class.
 */
public final class PythonContext implements AutoCloseable {
    private static final Path LIBRARIES = Path.of(System.getProperty("javaobjects.path", "build")).toAbsolutePath();

    static {
        System.load(LIBRARIES.resolve("libjavaobjects.so").toString());
        markEnd(Marker.END);
        Janitor.begin();
    }

    /** How many links there are, and how many of them keep their objects for Python. */
    public record Count(long links, long strong) {}

    private final ReentrantReadWriteLock inside = new ReentrantReadWriteLock();
    private final Links links = new Links();
    private final long handle;
    private volatile boolean closing;

    public PythonContext(String executable) {
        handle = open(this, links, executable, LIBRARIES.toString());
        links.open(handle);
    }

    /** The value of an expression, in the module __main__. */
    public Object eval(String expression) {
        return perform(Operation.EVAL, expression);
    }

    /** Runs statements in the module __main__. */
    public void exec(String statements) {
        perform(Operation.EXEC, statements);
    }

    /**
     * Looks at all links, and for circles through both heaps, which Java's collector may collect from then on. The
     * context does so by itself whenever the number of links has doubled.
     */
    public void collect() {
        enter();
        try {
            collect(handle);
        } finally {
            leave();
        }
    }

    public Count count() {
        enter();
        try {
            long[] counts = count(handle);
            return new Count(counts[0], counts[1]);
        } finally {
            leave();
        }
    }

    /** Ends what Python has of the calling thread; a thread that ends does so by itself. */
    public void detach() {
        enter();
        try {
            detach(handle);
        } finally {
            leave();
        }
    }

    /**
     * Waits for threads that are inside, finalises the interpreter and unloads it. Whoever uses its objects from now
     * on gets an IllegalStateException.
     */
    @Override
    public void close() {
        if (inside.getReadHoldCount() > 0)
            throw new IllegalStateException("the context is closed by a thread that is inside: let its call return");
        closing = true;
        inside.writeLock().lock();
        try {
            if (!links.isOpen()) return;
            try {
                finish(handle);
            } finally {
                links.close();
            }
        } finally {
            inside.writeLock().unlock();
        }
    }

    Object perform(Operation operation, Object... args) {
        enter();
        try {
            return perform(handle, operation.ordinal(), args);
        } finally {
            leave();
        }
    }

    /** Called by C code. */
    long entryOf(Object object) {
        return links.entryOf(object);
    }

    static IllegalStateException closed() {
        return new IllegalStateException("the context of this Python object has been closed");
    }

    /** Never waits: a thread that Python code inside waits for gets an exception, and not a deadlock. */
    private void enter() {
        if (closing && inside.getReadHoldCount() == 0 || !inside.readLock().tryLock()) throw closed();
    }

    private void leave() {
        inside.readLock().unlock();
    }

    private static native void markEnd(Marker end);

    private static native long open(PythonContext context, Links links, String executable, String folder);

    private static native Object perform(long handle, int operation, Object[] args);

    private static native void collect(long handle);

    private static native long[] count(long handle);

    private static native void detach(long handle);

    static native long newEntry(long handle, Object object);

    static native void died(long handle, long entry);

    private static native void finish(long handle);

    static native void release(long handle);
}

package javaobjects;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * A Python object. While this proxy lives it is the only one of its object, so {@code ==} is Python's {@code is}; and
 * it is kept, as any other object of Java. Any thread may use it. After its context has been closed all that it does
 * is throw {@link IllegalStateException}.
 */
public final class PyObject extends Holder implements PyCallable, Iterable<Object> {
    final PythonContext context;
    final long address; // of the object, which the link keeps there

    PyObject(PythonContext context, long address) {
        this.context = context;
        this.address = address;
    }

    public PythonContext context() {
        return context;
    }

    public Object getAttr(String name) {
        return context.perform(Operation.GET_ATTR, this, name);
    }

    public void setAttr(String name, Object value) {
        context.perform(Operation.SET_ATTR, this, name, value);
    }

    public Object getItem(Object key) {
        return context.perform(Operation.GET_ITEM, this, key);
    }

    public void setItem(Object key, Object value) {
        context.perform(Operation.SET_ITEM, this, key, value);
    }

    @Override
    public Object call(Object... args) {
        Object[] all = new Object[args.length + 1];
        all[0] = this;
        System.arraycopy(args, 0, all, 1, args.length);
        return context.perform(Operation.CALL, all);
    }

    /** Calls a method. */
    public Object invoke(String name, Object... args) {
        return ((PyObject) getAttr(name)).call(args);
    }

    public long length() {
        return (Long) context.perform(Operation.LENGTH, this);
    }

    @Override
    public Iterator<Object> iterator() {
        PyObject iterator = (PyObject) context.perform(Operation.ITERATE, this);
        return new Iterator<>() {
            private Object next = Marker.METHOD; // not known yet

            @Override
            public boolean hasNext() {
                if (next == Marker.METHOD) next = context.perform(Operation.NEXT, iterator);
                return next != Marker.END;
            }

            @Override
            public Object next() {
                if (!hasNext()) throw new NoSuchElementException();
                Object result = next;
                next = Marker.METHOD;
                return result;
            }
        };
    }

    /** As Python's {@code ==}. */
    @Override
    public boolean equals(Object other) {
        return this == other || (Boolean) context.perform(Operation.EQUALS, this, other);
    }

    /** As Python's {@code hash}. */
    @Override
    public int hashCode() {
        return Long.hashCode((Long) context.perform(Operation.HASH, this));
    }

    /** As Python's {@code str}. */
    @Override
    public String toString() {
        return String.valueOf(context.perform(Operation.STR, this));
    }
}

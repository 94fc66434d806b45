package javaobjects;

/**
 * The Java objects that one context has been given, by identity. Who has its lock waits for nothing.
 */
final class Links {
    private long handle; // 0: the context has been closed
    private Ref[] slots = new Ref[64];
    private int count;

    synchronized void open(long opened) {
        handle = opened;
    }

    /** The address of the object's entry in C, which is made if there is none. */
    synchronized long entryOf(Object object) {
        if (handle == 0) throw PythonContext.closed();
        int hash = System.identityHashCode(object);
        for (Ref r = slots[hash & slots.length - 1]; r != null; r = r.next)
            if (r.hash == hash && r.refersTo(object)) return r.entry;
        if (count >= slots.length) grow();
        Ref made = new Ref(object, this, PythonContext.newEntry(handle, object), hash);
        put(made);
        count++;
        return made.entry;
    }

    /** Any thread; waits for no GIL. */
    synchronized void died(Ref ref) {
        if (handle == 0) return;
        if (ref.listed) remove(ref);
        PythonContext.died(handle, ref.entry);
    }

    synchronized boolean isOpen() {
        return handle != 0;
    }

    /** Frees what C has of the context. */
    synchronized void close() {
        PythonContext.release(handle);
        handle = 0;
        slots = null;
    }

    private void put(Ref ref) {
        int at = ref.hash & slots.length - 1;
        ref.next = slots[at];
        slots[at] = ref;
    }

    private void remove(Ref ref) {
        int at = ref.hash & slots.length - 1;
        if (slots[at] == ref) {
            slots[at] = ref.next;
        } else {
            Ref r = slots[at];
            while (r.next != ref) r = r.next;
            r.next = ref.next;
        }
        count--;
    }

    private void grow() {
        Ref[] old = slots;
        slots = new Ref[old.length * 2];
        for (Ref first : old)
            for (Ref r = first, next; r != null; r = next) {
                next = r.next;
                put(r);
            }
    }
}

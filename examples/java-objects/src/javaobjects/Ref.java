package javaobjects;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Tells that an object with a link has died. A phantom reference does so after finalisers have run, which may still
 * use the object; C code finds the object by a weak reference of JNI, which is cleared together with this one.
 */
final class Ref extends PhantomReference<Object> {
    static final ReferenceQueue<Object> DEAD = new ReferenceQueue<>();

    final Links links;
    final long entry;
    final int hash; // of an object that is listed
    final boolean listed;
    Ref next;

    /** Of a proxy, which is found by its Python object; called by C code. */
    Ref(Object object, Links links, long entry) {
        super(object, DEAD);
        this.links = links;
        this.entry = entry;
        this.hash = 0;
        this.listed = false;
    }

    /** Of a Java object, which is found by itself. */
    Ref(Object object, Links links, long entry, int hash) {
        super(object, DEAD);
        this.links = links;
        this.entry = entry;
        this.hash = hash;
        this.listed = true;
    }
}

/** A Java object as Python code sees it: its fields and methods are public. */
public class Thing {
    public final long id;
    public Object other;

    public Thing(long id) {
        this.id = id;
    }

    public long plus(long n) {
        return id + n;
    }

    @Override
    public String toString() {
        return "Thing " + id;
    }
}

package javaobjects;

/** An exception that Python code raised. Thrown back into its context, it is that exception itself. */
public final class PyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The exception's type, such as "ValueError" or "json.decoder.JSONDecodeError". */
    public final String type;

    /** What Python would print. */
    public final String traceback;

    /** The exception itself, or null. */
    public final transient PyObject value;

    PyException(String type, String message, String traceback, PyObject value) {
        super(message.isEmpty() ? type : type + ": " + message);
        this.type = type;
        this.traceback = traceback;
        this.value = value;
    }
}

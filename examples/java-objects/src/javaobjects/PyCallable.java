package javaobjects;

/** What Python code can call with any number of arguments. */
@FunctionalInterface
public interface PyCallable {
    Object call(Object... args) throws Exception;
}

package javaobjects;

/**
 * An object that the table of links can make refer to others, so that Java's collector sees the references that Python
 * objects have: a proxy, or, by itself, what stands for a Python object without a proxy.
 */
class Holder {
    Held held;
}

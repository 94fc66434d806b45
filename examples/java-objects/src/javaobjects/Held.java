package javaobjects;

/** What a {@link Holder} keeps; C code writes the fields. */
final class Held {
    Object object;
    Held next;
}

package javaobjects;

/** What Python asks of a Java object, in the order of {@code enum request} in bridge.h. */
enum Request {
    CALL,
    GET,
    SET,
    STR,
    EQUALS,
    HASH
}

package javaobjects;

/** What is done with a Python object, in the order of {@code enum operation} in bridge.h. */
enum Operation {
    GET_ATTR,
    SET_ATTR,
    GET_ITEM,
    SET_ITEM,
    CALL,
    STR,
    ITERATE,
    NEXT,
    EQUALS,
    HASH,
    LENGTH,
    EVAL,
    EXEC
}

package javaobjects;

/** What is no value, in the order of {@code enum kind} in bridge.h. */
enum Marker {
    END,
    METHOD,
    ABSENT
}

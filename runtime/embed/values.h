/* A set of values: see <extisolate/python.h>. */
#ifndef RUNTIME_EMBED_VALUES_H
#define RUNTIME_EMBED_VALUES_H

#include "runtime/embed/object.h"

struct extipy_node {
    enum extipy_kind kind;
    int64_t integer;
    double real;
    char *bytes;
    size_t length;
    size_t *items;
    size_t count, room; /* of items */
    struct extipy_object *object;
    struct extipy_buffer *buffer;
};

struct extipy_values {
    atomic_size_t refs;        /* of the program, and of jobs */
    struct extipy_node *nodes; /* number 1 is the first */
    size_t count, room;
    int fault; /* the first: an exti_code */
};

/* Adds a reference, which extipy_values_free ends; returns `v`, which may be NULL. */
const struct extipy_values *extipy__values_ref(const struct extipy_values *v);

/* NULL if there is no value of that number. */
const struct extipy_node *extipy__values_node(const struct extipy_values *v, size_t number);

/* Makes room in the container for so many items; non-zero: no memory. */
int extipy__values_reserve(struct extipy_values *v, size_t container, size_t count);
/* As extipy_object, with a reference that the set takes over. */
size_t extipy__values_object(struct extipy_values *v, struct extipy_object *object);

#endif

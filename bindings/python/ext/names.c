#include "bindings/python/ext/names.h"

#include <string.h>

#include "bindings/python/ext/reading.h"

/* A program asks for the same few names again and again.  To decode one and to look it up among the
 * interned ones would be a tenth of what an attribute costs. */
#define NAMES_BITS 6
#define LENGTH_MAX 48

static struct known {
    unsigned char bytes[LENGTH_MAX]; /* of the message */
    size_t length;                   /* 0: none */
    PyObject *name;                  /* a reference */
} all[1 << NAMES_BITS];

/* By its last bytes, as a message of a str has nine before the first character. */
static struct known *place_of(const unsigned char *bytes, size_t n)
{
    uint64_t last;

    memcpy(&last, bytes + n - sizeof last, sizeof last);
    return &all[last * 0x9e3779b97f4a7c15u >> (64 - NAMES_BITS)];
}

static void remember(struct known *k, const unsigned char *bytes, size_t n, PyObject *name)
{
    PyObject *former = k->name;

    Py_INCREF(name);
    k->name = name;
    k->length = n;
    memcpy(k->bytes, bytes, n);
    Py_XDECREF(former);
}

PyObject *pkg_names_read(const struct pkg_message *m)
{
    const unsigned char *bytes = pkg_message_bytes(m);
    struct known *k = m->length <= LENGTH_MAX ? place_of(bytes, m->length) : NULL;
    PyObject *name;

    if (k && k->length == m->length && memcmp(k->bytes, bytes, m->length) == 0) {
        Py_INCREF(k->name);
        return k->name;
    }
    name = pkg_read(m);
    if (name)
        PyUnicode_InternInPlace(&name);
    if (name && k)
        remember(k, bytes, m->length, name);
    return name;
}

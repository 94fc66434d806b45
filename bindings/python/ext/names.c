#include "bindings/python/ext/names.h"

#include <string.h>

/* A program asks for the same few names again and again.  To decode one and to look it up among the
 * interned ones would be a tenth of what an attribute costs. */
#define NAMES 64
#define LENGTH_MAX 48

static struct known {
    char bytes[LENGTH_MAX];
    size_t length;
    PyObject *name; /* a reference; NULL: none */
} all[NAMES];

static void remember(struct known *k, const char *bytes, size_t n, PyObject *name)
{
    PyObject *former = k->name;

    Py_INCREF(name);
    k->name = name;
    k->length = n;
    memcpy(k->bytes, bytes, n);
    Py_XDECREF(former);
}

PyObject *pkg_names_find(const char *bytes, size_t n, size_t hash)
{
    struct known *k = &all[hash % NAMES];
    PyObject *name;

    if (k->name && k->length == n && memcmp(k->bytes, bytes, n) == 0) {
        Py_INCREF(k->name);
        return k->name;
    }
    name = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)n, "surrogatepass");
    if (name)
        PyUnicode_InternInPlace(&name);
    if (name && n <= LENGTH_MAX)
        remember(k, bytes, n, name);
    return name;
}

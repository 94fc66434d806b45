/* What travels between interpreters: bytes, and memory beside them that is shared.  Knows no
 * Python. */
#ifndef BINDINGS_PYTHON_EXT_MESSAGE_H
#define BINDINGS_PYTHON_EXT_MESSAGE_H

#include <stddef.h>
#include <string.h>

#include <extisolate/python.h>

struct pkg_object;

/* It may be assigned, and then is the new variable's.  Only the bytes before `few` need to be zero
 * at first. */
struct pkg_message {
    unsigned char *bytes; /* NULL: they are in `few` */
    size_t length, room;
    struct extipy_buffer **buffers;
    size_t buffer_count;
    struct pkg_object **objects; /* a reference each */
    size_t object_count;
    unsigned char few[128];
};

/* What an object in the bytes begins with. */
enum pkg_tag {
    PKG_NONE,
    PKG_FALSE,
    PKG_TRUE,
    PKG_INT, /* a long long */
    PKG_BIG_INT,
    PKG_FLOAT, /* a double */
    PKG_STR,   /* this and what else has bytes: their number, a size_t, and they */
    PKG_BYTES,
    PKG_SHARED_BYTES, /* this and other memory: the buffer's number, a size_t */
    PKG_TUPLE,        /* how many objects follow, a size_t */
    PKG_VIEW,
    PKG_ARRAY,
    PKG_OBJECT,  /* the handle's number, a size_t */
    PKG_COMPLEX, /* two doubles */
    PKG_SLICE,   /* three objects follow */
    PKG_PACKED,  /* a tuple of the package's follows */
    PKG_BUILTIN, /* a class or function of builtins, by its name */
    PKG_ELLIPSIS,
    PKG_NOT_IMPLEMENTED
};

void pkg_message_free(struct pkg_message *m); /* for pkg_message_clear */
/* All return -1 if there is no memory. */
int pkg_message_grow(struct pkg_message *m, size_t n); /* room for so many bytes more */
/* An object with the number of its bytes, and they. */
int pkg_message_add_text(struct pkg_message *m, enum pkg_tag tag, const void *bytes, size_t n);
int pkg_message_add_buffer(struct pkg_message *m, struct extipy_buffer *buffer); /* consumes it */
int pkg_message_add_handle(struct pkg_message *m, struct pkg_object *object);    /* consumes it */

/* What follows is in line, as each call does it a few times. */

static inline void pkg_message_init(struct pkg_message *m)
{
    m->bytes = NULL;
    m->length = 0;
    m->room = sizeof m->few;
    m->buffers = NULL;
    m->buffer_count = 0;
    m->objects = NULL;
    m->object_count = 0;
}

static inline const unsigned char *pkg_message_bytes(const struct pkg_message *m)
{
    return m->bytes ? m->bytes : m->few;
}

/* Frees what is in it; it is empty then. */
static inline void pkg_message_clear(struct pkg_message *m)
{
    if (m->bytes || m->buffer_count || m->object_count)
        pkg_message_free(m);
    m->length = 0;
}

/* Most objects are of a few bytes, whose number is known where they are added. */
static inline int pkg_message_add_object(struct pkg_message *m, enum pkg_tag tag, const void *bytes,
                                         size_t n)
{
    unsigned char *at;

    if (n >= m->room - m->length && pkg_message_grow(m, n + 1) < 0)
        return -1;
    at = (m->bytes ? m->bytes : m->few) + m->length;
    *at = (unsigned char)tag;
    if (n)
        memcpy(at + 1, bytes, n);
    m->length += n + 1;
    return 0;
}

#endif

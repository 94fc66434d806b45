#include "bindings/python/ext/message.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/python/ext/object.h"

void pkg_message_free(struct pkg_message *m)
{
    for (size_t i = 0; i < m->buffer_count; i++)
        extipy_buffer_release(m->buffers[i]);
    free(m->buffers);
    for (size_t i = 0; i < m->object_count; i++)
        pkg_object_release(m->objects[i]);
    free(m->objects);
    free(m->bytes);
    pkg_message_init(m);
}

int pkg_message_grow(struct pkg_message *m, size_t n)
{
    size_t room = m->room * 2;
    unsigned char *grown;

    if (n > SIZE_MAX / 4 || m->length > SIZE_MAX / 4)
        return -1;
    if (room < m->length + n)
        room = m->length + n;
    grown = realloc(m->bytes, room);
    if (!grown)
        return -1;
    if (!m->bytes)
        memcpy(grown, m->few, m->length);
    m->bytes = grown;
    m->room = room;
    return 0;
}

static int add_bytes(struct pkg_message *m, const void *bytes, size_t n)
{
    if (n > m->room - m->length && pkg_message_grow(m, n) < 0)
        return -1;
    if (n)
        memcpy((m->bytes ? m->bytes : m->few) + m->length, bytes, n);
    m->length += n;
    return 0;
}

int pkg_message_add_text(struct pkg_message *m, enum pkg_tag tag, const void *bytes, size_t n)
{
    return pkg_message_add_object(m, tag, &n, sizeof n) < 0 ? -1 : add_bytes(m, bytes, n);
}

int pkg_message_add_buffer(struct pkg_message *m, struct extipy_buffer *buffer)
{
    struct extipy_buffer **grown = realloc(m->buffers, (m->buffer_count + 1) * sizeof *m->buffers);

    if (!grown) {
        extipy_buffer_release(buffer);
        return -1;
    }
    m->buffers = grown;
    m->buffers[m->buffer_count++] = buffer;
    return 0;
}

int pkg_message_add_handle(struct pkg_message *m, struct pkg_object *object)
{
    struct pkg_object **grown = realloc(m->objects, (m->object_count + 1) * sizeof *m->objects);

    if (!grown) {
        pkg_object_release(object);
        return -1;
    }
    m->objects = grown;
    m->objects[m->object_count++] = object;
    return 0;
}

#include "runtime/embed/values.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/embed/options.h"
#include "runtime/fail.h"

#if defined(EXTI_ANALYZE) && !defined(__clang__) /* gcc 12: who owns an array's elements? */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

int extipy_values_new(struct extipy_values **out, struct exti_error *err)
{
    struct extipy_values *v;

    if (!out)
        return pyrt_fail(err, EXTI_E_ARG, "out is NULL");
    v = calloc(1, sizeof *v);
    if (!v)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    atomic_init(&v->refs, 1);
    *out = v;
    return 0;
}

const struct extipy_values *extipy__values_ref(const struct extipy_values *v)
{
    if (v)
        atomic_fetch_add(&((struct extipy_values *)v)->refs, 1);
    return v;
}

void extipy_values_free(struct extipy_values *v)
{
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
        return;
    for (size_t i = 0; i < v->count; i++) {
        extipy_object_release(v->nodes[i].object);
        extipy_buffer_release(v->nodes[i].buffer);
        free(v->nodes[i].bytes);
        free(v->nodes[i].items);
    }
    free(v->nodes);
    free(v);
}

/* ---- adding ---- */

static size_t spoil(struct extipy_values *v, int code)
{
    if (v && !v->fault)
        v->fault = code;
    return 0;
}

static size_t add_node(struct extipy_values *v, const struct extipy_node *node)
{
    size_t room;
    struct extipy_node *grown;

    if (!v)
        return 0;
    if (v->count == v->room) {
        room = v->room ? v->room * 2 : 4;
        grown = realloc(v->nodes, room * sizeof *grown);
        if (!grown)
            return spoil(v, EXTI_E_NOMEM);
        v->nodes = grown;
        v->room = room;
    }
    v->nodes[v->count] = *node;
    return ++v->count;
}

static size_t add_bytes(struct extipy_values *v, const struct extipy_node *node, const void *bytes,
                        size_t length)
{
    const size_t number = v && (bytes || !length) ? add_node(v, node) : spoil(v, EXTI_E_ARG);
    struct extipy_node *added;

    if (!number)
        return 0;
    added = &v->nodes[number - 1];
    added->bytes = malloc(length + 1);
    if (!added->bytes)
        return spoil(v, EXTI_E_NOMEM);
    if (length)
        memcpy(added->bytes, bytes, length);
    added->bytes[length] = '\0';
    added->length = length;
    return number;
}

size_t extipy_none(struct extipy_values *v)
{
    return add_node(v, &(struct extipy_node){.kind = EXTIPY_NONE});
}

size_t extipy_bool(struct extipy_values *v, int truth)
{
    return add_node(v, &(struct extipy_node){.kind = EXTIPY_BOOL, .integer = truth != 0});
}

size_t extipy_int(struct extipy_values *v, int64_t integer)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)integer >> (8 * i));
    return extipy_big_int(v, bytes, sizeof bytes);
}

/* Whether the last byte says no more than the sign of the one before. */
static int is_needless(const unsigned char *bytes, size_t length)
{
    unsigned char sign = bytes[length - 2] & 0x80 ? 0xFF : 0;

    return bytes[length - 1] == sign;
}

size_t extipy_big_int(struct extipy_values *v, const void *bytes, size_t length)
{
    static const unsigned char zero;
    const unsigned char *at = length ? bytes : &zero;
    struct extipy_node node = {.kind = EXTIPY_INT};
    uint64_t integer = 0;

    if (!at)
        return spoil(v, EXTI_E_ARG);
    length = length ? length : 1;
    while (length > 1 && is_needless(at, length))
        length--;
    for (size_t i = 8; i-- > 0;)
        integer =
            integer << 8 | (i < length ? at[i] : (unsigned char)(at[length - 1] & 0x80 ? 0xFF : 0));
    node.integer = (int64_t)integer;
    return add_bytes(v, &node, at, length);
}

size_t extipy_float(struct extipy_values *v, double real)
{
    return add_node(v, &(struct extipy_node){.kind = EXTIPY_FLOAT, .real = real});
}

size_t extipy_str(struct extipy_values *v, const char *utf8, size_t length)
{
    return add_bytes(v, &(struct extipy_node){.kind = EXTIPY_STR}, utf8, length);
}

size_t extipy_bytes(struct extipy_values *v, const void *bytes, size_t length)
{
    return add_bytes(v, &(struct extipy_node){.kind = EXTIPY_BYTES}, bytes, length);
}

size_t extipy__values_object(struct extipy_values *v, struct extipy_object *object)
{
    size_t number = 0;

    if (object)
        number = add_node(v, &(struct extipy_node){.kind = EXTIPY_OBJECT, .object = object});
    if (!number) {
        extipy_object_release(object);
        spoil(v, object ? EXTI_E_NOMEM : EXTI_E_ARG);
    }
    return number;
}

size_t extipy_object(struct extipy_values *v, struct extipy_object *object)
{
    return extipy__values_object(v, extipy_object_keep(object));
}

size_t extipy_buffer(struct extipy_values *v, struct extipy_buffer *buffer)
{
    struct extipy_node node = {.kind = EXTIPY_BUFFER, .buffer = buffer};
    size_t number = buffer ? add_node(v, &node) : spoil(v, EXTI_E_ARG);

    if (number)
        extipy_buffer_keep(buffer);
    return number;
}

size_t extipy_container(struct extipy_values *v, enum extipy_kind kind, const size_t *items,
                        size_t count)
{
    struct extipy_node node = {.kind = kind};
    size_t number;

    if (!v || kind < EXTIPY_TUPLE || kind > EXTIPY_DICT || (count && !items) ||
        (kind == EXTIPY_DICT && count % 2))
        return spoil(v, EXTI_E_ARG);
    for (size_t i = 0; i < count; i++)
        if (!items[i] || items[i] > v->count)
            return spoil(v, EXTI_E_ARG);
    number = add_node(v, &node);
    if (!number || extipy__values_reserve(v, number, count))
        return 0;
    if (count)
        memcpy(v->nodes[number - 1].items, items, count * sizeof *items);
    v->nodes[number - 1].count = count;
    return number;
}

int extipy__values_reserve(struct extipy_values *v, size_t container, size_t count)
{
    struct extipy_node *node = &v->nodes[container - 1];
    size_t *grown;

    if (count <= node->room)
        return 0;
    if (count < node->room * 2)
        count = node->room * 2;
    grown = realloc(node->items, count * sizeof *grown);
    if (!grown) {
        spoil(v, EXTI_E_NOMEM);
        return -1;
    }
    node->items = grown;
    node->room = count;
    return 0;
}

static size_t append(struct extipy_values *v, size_t container, const size_t *items, size_t count)
{
    struct extipy_node *node;

    for (size_t i = 0; i < count; i++)
        if (!items[i] || items[i] > v->count)
            return spoil(v, EXTI_E_ARG);
    node = &v->nodes[container - 1];
    if (extipy__values_reserve(v, container, node->count + count))
        return 0;
    for (size_t i = 0; i < count; i++)
        node->items[node->count++] = items[i];
    return container;
}

size_t extipy_add(struct extipy_values *v, size_t container, size_t item)
{
    const struct extipy_node *node = extipy__values_node(v, container);

    if (!node || (node->kind != EXTIPY_LIST && node->kind != EXTIPY_SET))
        return spoil(v, EXTI_E_ARG);
    return append(v, container, &item, 1);
}

size_t extipy_add_pair(struct extipy_values *v, size_t dict, size_t key, size_t value)
{
    const struct extipy_node *node = extipy__values_node(v, dict);
    const size_t pair[] = {key, value};

    if (!node || node->kind != EXTIPY_DICT)
        return spoil(v, EXTI_E_ARG);
    return append(v, dict, pair, 2);
}

/* ---- reading ---- */

const struct extipy_node *extipy__values_node(const struct extipy_values *v, size_t number)
{
    return v && number && number <= v->count ? &v->nodes[number - 1] : NULL;
}

int extipy_value(const struct extipy_values *v, size_t number, struct extipy_value *out)
{
    const struct extipy_node *node = extipy__values_node(v, number);
    struct extipy_value value;

    if (!node || !out)
        return EXTI_E_ARG;
    value = (struct extipy_value){
        .kind = node->kind,
        .integer = node->integer,
        .real = node->real,
        .bytes = node->bytes,
        .length = node->length,
        .items = node->items,
        .count = node->count,
        .object = node->object,
        .buffer = node->buffer,
    };
    return extipy__options_write(out, &value, sizeof value);
}

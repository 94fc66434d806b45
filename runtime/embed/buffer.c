#include "runtime/embed/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/embed/options.h"
#include "runtime/fail.h"

/* ---- making ---- */

struct extipy_buffer *extipy__buffer_new(const struct extipy_view *view)
{
    const char *format = view->format ? view->format : "B";
    size_t n = (size_t)view->ndim, text = strlen(format) + 1;
    struct extipy_buffer *b = malloc(sizeof *b + 2 * n * sizeof *b->layout + text);

    if (!b)
        return NULL;
    *b = (struct extipy_buffer){.view = *view};
    atomic_init(&b->refs, 1);
    b->view.obj = NULL;
    b->view.internal = NULL;
    b->view.suboffsets = NULL;
    b->view.shape = b->layout;
    b->view.strides = b->layout + n;
    b->view.format = (char *)(b->layout + 2 * n);
    for (size_t i = 0; i < n; i++) {
        b->view.shape[i] = view->shape[i];
        b->view.strides[i] = view->strides[i];
    }
    memcpy(b->view.format, format, text);
    return b;
}

/* PEP 3118: "O" is one, and names of fields are between colons. */
int extipy__buffer_has_objects(const struct extipy_buffer *b)
{
    int in_name = 0;

    for (const char *at = b->view.format; *at; at++) {
        in_name ^= *at == ':';
        if (*at == 'O' && !in_name)
            return 1;
    }
    return 0;
}

static int wrong_info(struct exti_error *err, const char *what)
{
    return pyrt_fail(err, EXTI_E_ARG, "the buffer's description is wrong: %s", what);
}

/* Fills in what may be left out, and checks that the shape makes up the length. */
static int read_info(struct extipy_view *view, ptrdiff_t *shape, ptrdiff_t *strides,
                     const struct extipy_buffer_info *info, struct exti_error *err)
{
    size_t item = info->item_size ? info->item_size : 1, bytes = item;

    if (!info->data && info->length)
        return wrong_info(err, "data is NULL");
    if (info->dimensions < 0 || info->dimensions > EXTIPY_DIMENSIONS)
        return wrong_info(err, "dimensions is not 0 to 64");
    if (info->length > PTRDIFF_MAX || item > PTRDIFF_MAX || info->length % item)
        return wrong_info(err, "length is no multiple of item_size");
    if (!info->shape && (info->strides || info->dimensions > 1))
        return wrong_info(err, "shape is NULL");
    *view = (struct extipy_view){.buf = info->data,
                                 .len = (ptrdiff_t)info->length,
                                 .itemsize = (ptrdiff_t)item,
                                 .readonly = info->readonly != 0,
                                 .ndim = info->shape ? info->dimensions : 1,
                                 .format = (char *)info->format,
                                 .shape = shape,
                                 .strides = strides};
    for (int i = view->ndim; i-- > 0;) {
        shape[i] = info->shape ? info->shape[i] : view->len / view->itemsize;
        strides[i] = info->strides ? info->strides[i] : (ptrdiff_t)bytes;
        if (shape[i] < 0 || (shape[i] && bytes > PTRDIFF_MAX / (size_t)shape[i]))
            return wrong_info(err, "shape is negative or too large");
        bytes *= (size_t)shape[i];
    }
    return bytes == info->length ? 0 : wrong_info(err, "length is not what shape makes it");
}

int extipy_buffer_new(struct extipy_buffer **out, const struct extipy_buffer_info *given,
                      void (*release)(void *user), void *user, struct exti_error *err)
{
    ptrdiff_t shape[EXTIPY_DIMENSIONS], strides[EXTIPY_DIMENSIONS];
    struct extipy_buffer_info info;
    struct extipy_view view;
    struct extipy_buffer *b;
    int rc;

    if (!out || !given)
        return pyrt_fail(err, EXTI_E_ARG, "out or info is NULL");
    rc = extipy__options_read(&info, sizeof info, given, err);
    if (rc == 0)
        rc = read_info(&view, shape, strides, &info, err);
    if (rc != 0)
        return rc;
    b = extipy__buffer_new(&view);
    if (!b)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    b->release = release;
    b->user = user;
    *out = b;
    return 0;
}

/* ---- using ---- */

int extipy_buffer_info(const struct extipy_buffer *b, struct extipy_buffer_info *out)
{
    struct extipy_buffer_info info;

    if (!b || !out)
        return EXTI_E_ARG;
    info = (struct extipy_buffer_info){
        .data = b->view.buf,
        .length = (size_t)b->view.len,
        .item_size = (size_t)b->view.itemsize,
        .readonly = b->view.readonly,
        .dimensions = b->view.ndim,
        .format = b->view.format,
        .shape = b->view.shape,
        .strides = b->view.strides,
    };
    return extipy__options_write(out, &info, sizeof info);
}

struct extipy_buffer *extipy_buffer_keep(struct extipy_buffer *b)
{
    if (b)
        atomic_fetch_add(&b->refs, 1);
    return b;
}

static void uncount_buffer(struct extipy_ctx *c)
{
    pthread_mutex_lock(&c->lock);
    c->buffers--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void extipy_buffer_release(struct extipy_buffer *b)
{
    struct extipy_ctx *c;

    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    if (b->origin) {
        c = extipy__context_ref(b->origin->ctx);
        extipy_object_release(b->origin);
        uncount_buffer(c);
        extipy__context_unref(c);
    } else if (b->release) {
        b->release(b->user);
    }
    free(b);
}

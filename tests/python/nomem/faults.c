/* The linker's --wrap redirects the library's calls to the functions here whose names begin with
 * __wrap_; what begins with __real_ is the function itself. */
#include "tests/python/nomem/faults.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/embed/finalise.h"
#include "runtime/embed/output.h"
#include "runtime/heap.h"
#include "runtime/module.h"

struct way way;
long first = LONG_MAX;
atomic_bool failing;
atomic_long failed, live;

static atomic_long left;     /* allocations until the one that fails */
static _Thread_local int in; /* Python's allocator */

static bool fails_now(bool python)
{
    long n;

    if (in || !failing || way.python != python)
        return false;
    n = atomic_fetch_sub(&left, 1);
    if (n > 0 || (n < 0 && !way.on))
        return false;
    failed++;
    errno = ENOMEM;
    return true;
}

void begin_failing(enum begin begin)
{
    if (way.begin != begin)
        return;
    left = first;
    failing = true;
}

/* ---- the library's calls ---- */

/* ld resolves a shared library's reference without a version, as one to the address sanitizer's
 * malloc is, by these too; a hidden one fails the link. */
#pragma GCC visibility push(default)

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *at, size_t n);
char *__real_strdup(const char *text);
void __real_free(void *at);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __real_eventfd(unsigned n, int flags);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *at, size_t n);
char *__wrap_strdup(const char *text);
void __wrap_free(void *at);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_eventfd(unsigned n, int flags);

#pragma GCC visibility pop

static void *count(void *at)
{
    live += at && !in;
    return at;
}

void *__wrap_malloc(size_t n)
{
    return fails_now(false) ? NULL : count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now(false) ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *at, size_t n)
{
    if (fails_now(false))
        return NULL;
    return at ? __real_realloc(at, n) : count(__real_realloc(NULL, n));
}

char *__wrap_strdup(const char *text)
{
    return fails_now(false) ? NULL : count(__real_strdup(text));
}

void __wrap_free(void *at)
{
    live -= at && !in;
    __real_free(at);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return fails_now(false) ? EAGAIN : __real_pthread_create(out, attr, run, arg);
}

void start_thread(pthread_t *out, void *(*run)(void *), void *arg)
{
    if (__real_pthread_create(out, NULL, run, arg) != 0)
        abort();
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    /* Once a thread has had a value of the key, there is memory for it. */
    if (!pthread_getspecific(key) && fails_now(false))
        return ENOMEM;
    return __real_pthread_setspecific(key, value);
}

int __wrap_eventfd(unsigned n, int flags)
{
    return fails_now(false) ? -1 : __real_eventfd(n, flags);
}

/* ---- Python's allocations ---- */

/* Of the three domains of each context that is opened here. */
static struct pyrt_allocator below[3 * 200];
static atomic_uint below_count;

static void *python_malloc(void *ctx, size_t n)
{
    const struct pyrt_allocator *a = ctx;
    void *at;

    if (fails_now(true))
        return NULL;
    in++;
    at = a->malloc(a->ctx, n);
    in--;
    return at;
}

static void *python_calloc(void *ctx, size_t n, size_t size)
{
    const struct pyrt_allocator *a = ctx;
    void *at;

    if (fails_now(true))
        return NULL;
    in++;
    at = a->calloc(a->ctx, n, size);
    in--;
    return at;
}

static void *python_realloc(void *ctx, void *at, size_t n)
{
    const struct pyrt_allocator *a = ctx;

    if (fails_now(true))
        return NULL;
    in++;
    at = a->realloc(a->ctx, at, n);
    in--;
    return at;
}

static void python_free(void *ctx, void *at)
{
    const struct pyrt_allocator *a = ctx;

    in++;
    a->free(a->ctx, at);
    in--;
}

void __real_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);
void __wrap_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);
void __wrap_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py)
{
    struct pyrt_allocator ours = {NULL, python_malloc, python_calloc, python_realloc, python_free};

    __real_pyrt_heap_install(h, py);
    for (int domain = PYRT_DOMAIN_RAW; domain <= PYRT_DOMAIN_OBJ; domain++) {
        if (below_count == sizeof below / sizeof *below)
            abort();
        ours.ctx = &below[below_count++];
        py->PyMem_GetAllocator(domain, ours.ctx);
        py->PyMem_SetAllocator(domain, &ours);
    }
}

/* Frees blocks of Python's, which are not counted, and two of the library's. */
void __real_pyrt_heap_free(struct pyrt_heap *h);
void __wrap_pyrt_heap_free(struct pyrt_heap *h);
void __wrap_pyrt_heap_free(struct pyrt_heap *h)
{
    in++;
    __real_pyrt_heap_free(h);
    in--;
    live -= h ? 2 : 0;
}

/* ---- steps of a start and an end ---- */

int __real_pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index,
                           int count, struct exti_error *err);
int __wrap_pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index,
                           int number, struct exti_error *err);
int __wrap_pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index,
                           int number, struct exti_error *err)
{
    int rc;

    begin_failing(AT_MODULE);
    rc = __real_pyrt_module_add(py, ctx, index, number, err);
    if (way.begin == AT_MODULE)
        failing = false;
    return rc;
}

int __real_extipy__output_begin(struct extipy_ctx *c, const struct extipy_opts *opts,
                                struct exti_error *err);
int __wrap_extipy__output_begin(struct extipy_ctx *c, const struct extipy_opts *opts,
                                struct exti_error *err);
int __wrap_extipy__output_begin(struct extipy_ctx *c, const struct extipy_opts *opts,
                                struct exti_error *err)
{
    int rc;

    begin_failing(AT_OUTPUT);
    rc = __real_extipy__output_begin(c, opts, err);
    if (way.begin == AT_OUTPUT)
        failing = false;
    return rc;
}

void __real_extipy__finalise(const struct pyrt_api *py);
void __wrap_extipy__finalise(const struct pyrt_api *py);
void __wrap_extipy__finalise(const struct pyrt_api *py)
{
    begin_failing(AT_END);
    __real_extipy__finalise(py);
}

#include "tests/python/support/host.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

const struct extipy_python *host_python(void)
{
    static struct extipy_python *python;
    const char *exe = getenv("EXTI_PYTHON");
    struct exti_error err;

    if (!python && extipy_find(&python, exe ? exe : "/usr/bin/python3", &err) < 0)
        skip_because("%s", err.message);
    return python;
}

struct extipy_ctx *host_open(void)
{
    struct exti_error err = {0};
    struct extipy_ctx *c = NULL;

    assert_ok(extipy_open(&c, host_python(), NULL, &err), &err);
    return c;
}

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("held: %s: %s\n", finding->file, finding->message);
    return 0;
}

void host_close(struct extipy_ctx *c)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct exti_error err = {0};

    assert_ok(extipy_close(c, print_finding, NULL, &closed, &err), &err);
    assert_int_equal(closed.attached, 0);
    assert_int_equal(closed.mapped, 0);
}

void host_symbol(struct extipy_ctx *c, const char *name, void *slot)
{
    struct exti_module *libpython;
    struct exti_error err = {0};
    void *p;

    assert_ok(exti_api(extipy_loader(c), &libpython, &err), &err);
    assert_ok(exti_symbol(libpython, name, &p, &err), &err);
    memcpy(slot, &p, sizeof p);
}

int host_run_inside(struct extipy_ctx *c, const char *source)
{
    int (*run)(const char *, void *);

    host_symbol(c, "PyRun_SimpleStringFlags", &run);
    return run(source, NULL);
}

void host_run(struct extipy_ctx *c, const char *source)
{
    struct exti_error err = {0};
    int rc;

    assert_ok(extipy_enter(c, &err), &err);
    rc = host_run_inside(c, source);
    assert_ok(extipy_leave(c, &err), &err);
    assert_int_equal(rc, 0);
}

long host_long(struct extipy_ctx *c, const char *expression)
{
    void *(*add_module)(const char *), *(*get_dict)(void *), *dict, *value;
    void *(*run)(const char *, int, void *, void *, void *);
    long (*as_long)(void *), n;
    void (*dec_ref)(void *);
    struct exti_error err = {0};

    host_symbol(c, "PyImport_AddModule", &add_module);
    host_symbol(c, "PyModule_GetDict", &get_dict);
    host_symbol(c, "PyRun_StringFlags", &run);
    host_symbol(c, "PyLong_AsLong", &as_long);
    host_symbol(c, "Py_DecRef", &dec_ref);
    assert_ok(extipy_enter(c, &err), &err);
    dict = get_dict(add_module("__main__"));
    value = run(expression, 258 /* Py_eval_input */, dict, dict, NULL);
    n = value ? as_long(value) : -1;
    dec_ref(value);
    assert_ok(extipy_leave(c, &err), &err);
    assert_non_null(value);
    return n;
}

void host_must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "a call failed: %s\n", extipy_code_name(rc));
    abort();
}

struct extipy_job *host_submit(struct extipy_ctx *c, const char *function, long n,
                               const struct extipy_job_opts *opts)
{
    struct extipy_call call = {.size = sizeof call, .function = function};
    struct extipy_values *v = NULL;
    struct extipy_job *job = NULL;

    host_must(extipy_values_new(&v, NULL));
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){extipy_int(v, n)}, 1);
    host_must(extipy_submit(&job, c, &call, opts, NULL));
    extipy_values_free(v);
    return job;
}

int host_end(struct extipy_job *job, long *out)
{
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    int rc;

    host_must(extipy_job_wait(job, -1, NULL));
    rc = extipy_job_result(job, &result, NULL, NULL);
    if (rc == 0 && out) {
        host_must(extipy_value(result, 1, &value));
        host_must(value.kind == EXTIPY_INT ? 0 : EXTI_E_ARG);
        *out = (long)value.integer;
    }
    extipy_values_free(result);
    extipy_job_release(job);
    return rc;
}

/* ---- a function that waits ---- */

static sem_t in_block, out_of_block;

static void block(void)
{
    sem_post(&in_block);
    while (sem_wait(&out_of_block) != 0)
        continue;
}

void host_define_block(struct extipy_ctx *c)
{
    char source[256];

    sem_init(&in_block, 0, 0);
    sem_init(&out_of_block, 0, 0);
    snprintf(source, sizeof source,
             "import ctypes\n"
             "_block = ctypes.CFUNCTYPE(None)(%lu)\n"
             "def block(n):\n"
             "    _block()\n"
             "    return n\n",
             host_address(block));
    host_run(c, source);
}

void host_await_blocked(void)
{
    while (sem_wait(&in_block) != 0)
        continue;
}

void host_unblock(void)
{
    sem_post(&out_of_block);
}

/* Calls and jobs of libextisolate-python, against what none could do without. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include <extisolate/python.h>

#include "bench/bench.h"

#define SECTION "calls of a context by a C program, of a function that returns None"

/* Kept short, so that some rounds find the machine quiet; the best counts. */
#define CALLS 200
#define ROUNDS 400

static struct extipy_ctx *ctx;
static struct extipy_call call;

static struct {
    void *(*save)(void);
    void (*restore)(void *state);
    void *(*call)(void *callee, void *args);
    void (*drop)(void *object);
    void *(*get)(void *object, void *name);
    void *callee, *object, *name, *same, *number; /* object.name; same(number) */
} python;

static void find_symbol(const char *name, void *slot)
{
    struct exti_module *libpython;
    struct exti_error err;
    void *found;

    must(exti_api(extipy_loader(ctx), &libpython, &err), &err);
    must(exti_symbol(libpython, name, &found, &err), &err);
    memcpy(slot, &found, sizeof found);
}

/* ---- what is measured ---- */

/* As a call does: once into the context and once back, but nothing else. */
static void let_go_twice(void)
{
    for (int i = 0; i < 2; i++)
        python.restore(python.save());
}

static void call_at_home(void)
{
    let_go_twice();
    python.drop(python.call(python.callee, NULL));
}

static void get_at_home(void)
{
    let_go_twice();
    python.drop(python.get(python.object, python.name));
}

static void call_with_int_at_home(void)
{
    let_go_twice();
    python.drop(python.call(python.same, python.number));
}

static void call_context(void)
{
    struct extipy_values *result;
    struct exti_error err;

    must(extipy_call(ctx, &call, &result, NULL, &err), &err);
    extipy_values_free(result);
}

static void submit_job(void)
{
    struct extipy_values *result;
    struct extipy_job *job;
    struct exti_error err;

    must(extipy_submit(&job, ctx, &call, NULL, &err), &err);
    must(extipy_job_wait(job, -1, &err), &err);
    must(extipy_job_result(job, &result, NULL, &err), &err);
    extipy_values_free(result);
    extipy_job_release(job);
}

/* ---- rounds ---- */

/* Has this thread, and those that it starts, run on one processor.  Two threads that wake each other
 * on two take five times as long where a processor that waits is halted, as in virtual machines, and
 * it is chance whether they do. */
static void stay_here(cpu_set_t *former)
{
    const int here = sched_getcpu();
    cpu_set_t one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof *former, former) != 0 || here < 0)
        die("the processor is not known");
    CPU_SET(here, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        die("cannot stay on one processor");
}

static double time_of(void (*function)(void))
{
    double start = now();

    for (int i = 0; i < CALLS; i++)
        function();
    return (now() - start) / CALLS * 1e6;
}

static void open_context(const struct bench *b, struct extipy_python **installation)
{
    struct extipy_call find = {.size = sizeof find, .function = "__main__:find", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *found;
    void *(*get)(void *, const char *), *(*import)(const char *), *main_module;
    struct exti_error err;

    must(extipy_find(installation, b->python, &err), &err);
    must(extipy_open(&ctx, *installation, NULL, &err), &err);
    must(extipy_exec(ctx,
                     "def nothing(): pass\n"
                     "def find(): return nothing\n"
                     "class Thing: number = 5\n"
                     "thing = Thing()\n"
                     "name = 'number'\n"
                     "def same(n): return n\n"
                     "arguments = (5,)\n",
                     NULL, &err),
         &err);
    must(extipy_call(ctx, &find, &found, NULL, &err), &err);
    must(extipy_value(found, 1, &value), &err);
    call = (struct extipy_call){.size = sizeof call, .callee = extipy_object_keep(value.object)};
    extipy_values_free(found);
    find_symbol("PyEval_SaveThread", &python.save);
    find_symbol("PyEval_RestoreThread", &python.restore);
    find_symbol("PyObject_CallObject", &python.call);
    find_symbol("Py_DecRef", &python.drop);
    find_symbol("PyObject_GetAttrString", &get);
    find_symbol("PyImport_AddModule", &import);
    must(extipy_enter(ctx, &err), &err);
    find_symbol("PyObject_GetAttr", &python.get);
    main_module = import("__main__");
    python.callee = get(main_module, "nothing");
    python.object = get(main_module, "thing");
    python.name = get(main_module, "name");
    python.same = get(main_module, "same");
    python.number = get(main_module, "arguments");
    must(extipy_leave(ctx, &err), &err);
}

void bench_embed(const struct bench *b)
{
    double home = 0, got = 0, with_int = 0, called = 0, job = 0, bare = 0;
    struct extipy_python *installation;
    struct exti_error err;
    cpu_set_t processors;

    stay_here(&processors);
    open_context(b, &installation);
    hand_over_begin();
    for (int i = 0; i < (b->quick ? ROUNDS / 10 : ROUNDS); i++) {
        must(extipy_enter(ctx, &err), &err);
        keep_least(&home, time_of(call_at_home));
        keep_least(&got, time_of(get_at_home));
        keep_least(&with_int, time_of(call_with_int_at_home));
        must(extipy_leave(ctx, &err), &err);
        keep_least(&called, time_of(call_context));
        keep_least(&job, time_of(submit_job));
        keep_least(&bare, time_of(hand_over));
    }
    hand_over_end();
    sched_setaffinity(0, sizeof processors, &processors);
    extipy_object_release(call.callee);
    must(extipy_close(ctx, NULL, NULL, NULL, &err), &err);
    extipy_python_free(installation);
    add_row(SECTION, "releasing and taking an idle GIL twice, and the call inside", home, "us");
    add_row(SECTION, "the same with an attribute of an object", got, "us");
    add_row(SECTION, "the same with a call with one int", with_int, "us");
    add_row(SECTION, "extipy_call by a handle, with its result", called, "us");
    add_claim(SECTION, "the call against the GIL and the call inside", called / home, "x", true, 3);
    add_row(SECTION, "a hand-over between two threads, and back", bare, "us");
    add_row(SECTION, "extipy_submit and extipy_job_wait, with the result", job, "us");
    add_claim(SECTION, "the job against the hand-over", job / bare, "x", true, 1.2);
}

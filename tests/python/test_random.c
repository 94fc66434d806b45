/* Sixteen threads do with contexts what the header allows, at random: calls that return and that
 * raise, handles and memory that other threads release, jobs that are cancelled, interrupted and
 * late, contexts entered from others, detached from, closed and opened anew.
 *
 * EXTI_SECONDS: for how long. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 16
#define CONTEXTS 3
#define BOXES 64 /* things that wait for whoever takes them */

static const char source[] = "import array, sys, time\n"
                             "class Thing:\n"
                             "    def __init__(self): self.n = 0\n"
                             "    def __call__(self, n): self.n += n; return self.n\n"
                             "kept = [Thing() for i in range(4)]\n"
                             "def echo(*args): return args\n"
                             "def thing(i): return kept[i] if i < 4 else Thing()\n"
                             "def memory(n): return array.array('q', range(n))\n"
                             "def total(m): return sum(memoryview(m).cast('B').cast('q'))\n"
                             "def again(n): return again(n + 1)\n"
                             "def fail(i):\n"
                             "    if i == 0: raise ValueError('no')\n"
                             "    if i == 1: sys.exit(3)\n"
                             "    if i == 2: raise KeyboardInterrupt\n"
                             "    if i == 3: raise MemoryError\n"
                             "    if i == 4: again(0)\n"
                             "    try: {}[i]\n"
                             "    except KeyError as e: raise OSError(2, 'gone') from e\n"
                             "def spin(ms):\n"
                             "    end = time.monotonic() + ms / 1000\n"
                             "    while time.monotonic() < end: pass\n"
                             "    return ms\n";
static const char *const raised_types[] = {"ValueError",  "SystemExit",     "KeyboardInterrupt",
                                           "MemoryError", "RecursionError", "FileNotFoundError"};

/* A context that threads use; whoever closes it waits until all who do are inside, and so may still
 * name it. */
struct place {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct extipy_ctx *c;
    int using, inside, closing;
};

struct box {
    struct extipy_object *object;
    struct extipy_buffer *buffer;
};

static struct place places[CONTEXTS];
static struct extipy_pool *pool;
static pthread_mutex_t boxes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct box boxes[BOXES];
static atomic_int over;
static atomic_ulong steps, closed_contexts, raised_exceptions, ended_jobs;

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    pthread_t id;
    uint64_t random;
};

static unsigned random_below(struct worker *w, unsigned n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (unsigned)((w->random >> 11) % n);
}

static void must(int truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

/* ---- places ---------------------------------------------------------------------------------- */

static void place_open(struct place *p)
{
    struct exti_error err = {0};

    if (extipy_open(&p->c, host_python(), NULL, &err) < 0)
        must(0, err.message);
    host_must(extipy_exec(p->c, source, NULL, NULL));
}

/* The thread is in the context then; 0: it is being closed. */
static int place_enter(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->closing) {
        pthread_mutex_unlock(&p->lock);
        return 0;
    }
    p->using ++;
    pthread_mutex_unlock(&p->lock);
    host_must(extipy_enter(p->c, NULL));
    pthread_mutex_lock(&p->lock);
    p->inside++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return 1;
}

static void place_leave(struct place *p, struct worker *w)
{
    const int detaches = random_below(w, 8) == 0;

    /* To be outside and name it, nobody may be about to close it. */
    pthread_mutex_lock(&p->lock);
    p->inside -= detaches;
    pthread_mutex_unlock(&p->lock);
    host_must(extipy_leave(p->c, NULL));
    if (detaches) {
        const int rc = extipy_detach(p->c, NULL);

        must(rc == 0 || rc == EXTIPY_E_PLACE, "a thread is detached");
    }
    pthread_mutex_lock(&p->lock);
    p->using --;
    p->inside -= !detaches;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("held: %s: %s\n", finding->file, finding->message);
    return fflush(stdout);
}

static void place_close(struct place *p)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct exti_error err = {0};

    if (extipy_close(p->c, print_finding, NULL, &closed, &err) < 0)
        must(0, err.message);
    must(closed.buffers || !closed.mapped, "all is unloaded");
    atomic_fetch_add(&closed_contexts, 1);
}

static void place_renew(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->closing) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->closing = 1;
    while (p->using != p->inside)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    place_close(p);
    place_open(p);
    pthread_mutex_lock(&p->lock);
    p->closing = 0;
    pthread_mutex_unlock(&p->lock);
}

/* ---- what threads leave to each other -------------------------------------------------------- */

/* Puts it into some box, and releases what is there. */
static void box_put(struct worker *w, struct box new)
{
    const unsigned i = random_below(w, BOXES);
    struct box old;

    pthread_mutex_lock(&boxes_lock);
    old = boxes[i];
    boxes[i] = new;
    pthread_mutex_unlock(&boxes_lock);
    extipy_object_release(old.object);
    extipy_buffer_release(old.buffer);
}

/* A reference to some memory, or NULL. */
static struct extipy_buffer *box_buffer(struct worker *w)
{
    struct extipy_buffer *b;

    pthread_mutex_lock(&boxes_lock);
    b = extipy_buffer_keep(boxes[random_below(w, BOXES)].buffer);
    pthread_mutex_unlock(&boxes_lock);
    return b;
}

/* ---- calls; the thread is inside ------------------------------------------------------------- */

static struct extipy_values *one_argument(size_t (*make)(struct extipy_values *, int64_t),
                                          int64_t n, struct extipy_call *call)
{
    struct extipy_values *v = NULL;

    host_must(extipy_values_new(&v, NULL));
    call->values = v;
    call->args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){make(v, n)}, 1);
    return v;
}

static size_t nested(struct extipy_values *v, int64_t n)
{
    const size_t list = extipy_container(v, EXTIPY_LIST, NULL, 0);

    extipy_add(v, list, extipy_int(v, n));
    extipy_add(v, list, extipy_str(v, "text", 4));
    extipy_add(v, list, extipy_float(v, (double)n / 2));
    extipy_add(v, list, list);
    return list;
}

static void call_and_compare(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:echo"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    const int64_t n = random_below(w, 1000);
    struct extipy_values *v = one_argument(nested, n, &call);

    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    must(value.kind == EXTIPY_TUPLE && value.count == 1, "a tuple comes back");
    host_must(extipy_value(result, value.items[0], &value));
    must(value.kind == EXTIPY_LIST && value.count == 4, "the list comes back");
    host_must(extipy_value(result, value.items[0], &value));
    must(value.kind == EXTIPY_INT && value.integer == n, "the number comes back");
    extipy_values_free(result);
    extipy_values_free(v);
}

static void call_and_raise(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:fail"};
    struct extipy_exception *e = NULL;
    const unsigned i = random_below(w, ARRAY_SIZE(raised_types));
    struct extipy_values *v = one_argument(extipy_int, i, &call);

    must(extipy_call(c, &call, NULL, &e, NULL) == EXTIPY_E_RAISED, "it raises");
    must(strcmp(e->type, raised_types[i]) == 0, e->type);
    must(i < 5 || (e->cause && strcmp(e->cause->type, "KeyError") == 0), "it has a cause");
    box_put(w, (struct box){.object = extipy_object_keep(e->object)});
    extipy_exception_free(e);
    extipy_values_free(v);
    atomic_fetch_add(&raised_exceptions, 1);
}

/* A reference to an object that the context keeps, or a new one. */
static struct extipy_object *thing(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:thing"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct extipy_values *v = one_argument(extipy_int, random_below(w, 8), &call);
    struct extipy_object *object;

    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    object = extipy_object_keep(value.object);
    extipy_values_free(result);
    extipy_values_free(v);
    return object;
}

static void call_a_handle(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_object *object = thing(w, c);
    struct extipy_call call = {.size = sizeof call, .callee = object};
    struct extipy_values *v = one_argument(extipy_int, 1, &call);

    host_must(extipy_call(c, &call, NULL, NULL, NULL));
    extipy_values_free(v);
    box_put(w, (struct box){.object = object});
}

static void lend_memory(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:memory", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct extipy_values *v = one_argument(extipy_int, 100, &call);
    struct extipy_buffer *b = NULL;

    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    host_must(extipy_buffer_of(&b, value.object, 0, NULL, NULL));
    extipy_values_free(result);
    extipy_values_free(v);
    box_put(w, (struct box){.buffer = b});
}

/* Of any context, closed ones too. */
static void read_memory(struct worker *w, struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:total"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result = NULL;
    struct extipy_buffer *b = box_buffer(w);

    if (!b)
        return;
    host_must(extipy_values_new(&v, NULL));
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){extipy_buffer(v, b)}, 1);
    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    must(value.integer == 4950, "memory has what its context has put into it");
    extipy_values_free(result);
    extipy_values_free(v);
    extipy_buffer_release(b);
}

/* A context that is about to be closed takes none. */
static void submit_a_job(struct worker *w, struct extipy_ctx *c)
{
    const struct extipy_job_opts opts = {.size = sizeof opts,
                                         .timeout = random_below(w, 3) ? 0 : 2000000};
    struct extipy_call call = {.size = sizeof call, .function = "__main__:spin"};
    struct extipy_values *v = one_argument(extipy_int, random_below(w, 4), &call);
    struct extipy_job *job = NULL;
    int rc = extipy_submit(&job, c, &call, &opts, NULL);

    extipy_values_free(v);
    if (rc == EXTIPY_E_CLOSED)
        return;
    host_must(rc);
    if (random_below(w, 3) == 0)
        extipy_job_cancel(job, NULL);
    if (random_below(w, 3) == 0)
        extipy_job_interrupt(job, NULL);
    if (random_below(w, 3) == 0) {
        extipy_job_release(job); /* it is run all the same */
        return;
    }
    rc = host_end(job, NULL);
    must(rc == 0 || rc == EXTIPY_E_RAISED || rc == EXTIPY_E_CANCELLED || rc == EXTIPY_E_TIMEOUT ||
             rc == EXTIPY_E_CLOSED,
         extipy_code_name(rc));
    atomic_fetch_add(&ended_jobs, 1);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void use(struct worker *w, struct extipy_ctx *c)
{
    switch (random_below(w, 7)) {
    case 0:
        call_and_compare(w, c);
        break;
    case 1:
        call_and_raise(w, c);
        break;
    case 2:
        call_a_handle(w, c);
        break;
    case 3:
        lend_memory(w, c);
        break;
    case 4:
        read_memory(w, c);
        break;
    case 5:
        submit_a_job(w, c);
        break;
    default:
        host_must(extipy_exec(c, "kept[0].n = 0", NULL, NULL));
    }
}

/* From one to the next: each thread is inside of all that it has entered. */
static void use_places(struct worker *w, int depth)
{
    struct place *p = &places[random_below(w, CONTEXTS)];

    if (!place_enter(p))
        return;
    for (unsigned n = random_below(w, 4); n > 0; n--)
        use(w, p->c);
    if (depth < 3 && random_below(w, 3) == 0)
        use_places(w, depth + 1);
    place_leave(p, w);
}

static void use_pool(struct worker *w)
{
    struct extipy_ctx *c = NULL;
    int rc = extipy_pool_acquire(&c, pool, 50000000, NULL);

    if (rc == EXTIPY_E_TIMEOUT)
        return;
    host_must(rc);
    use(w, c);
    host_must(extipy_pool_give_back(pool, c, random_below(w, 100) == 0, NULL));
}

static void *work(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load(&over)) {
        const unsigned what = random_below(w, 400);

        if (what == 0)
            place_renew(&places[random_below(w, CONTEXTS)]);
        else if (what < 40)
            use_pool(w);
        else if (what < 80)
            box_put(w, (struct box){0});
        else
            use_places(w, 0);
        atomic_fetch_add(&steps, 1);
    }
    return NULL;
}

static void threads_do_anything(void **state)
{
    const char *seconds = getenv("EXTI_SECONDS");
    struct extipy_pool_opts opts = {
        .size = sizeof opts, .count = 2, .source = source, .most_calls = 500};
    static struct worker workers[THREADS];
    struct worker last = {.random = 1};

    (void)state;
    for (size_t i = 0; i < CONTEXTS; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
        pthread_cond_init(&places[i].changed, NULL);
        place_open(&places[i]);
    }
    host_must(extipy_pool_open(&pool, host_python(), &opts, NULL));
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].random = (i + 1) * 0x9e3779b97f4a7c15u;
        assert_int_equal(pthread_create(&workers[i].id, NULL, work, &workers[i]), 0);
    }
    sleep(seconds ? (unsigned)atoi(seconds) : 3);
    atomic_store(&over, 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].id, NULL), 0);
    for (size_t i = 0; i < CONTEXTS; i++)
        place_close(&places[i]);
    host_must(extipy_pool_close(pool, NULL, NULL, NULL, NULL));
    extipy_pool_free(pool);
    for (int i = 0; i < BOXES * 40; i++)
        box_put(&last, (struct box){0});
    for (int i = 0; i < 3000 && extipy_lingering(); i++)
        usleep(10000);
    assert_int_equal(extipy_lingering(), 0);
    print_message("%lu steps, %lu exceptions, %lu jobs, %lu contexts closed\n", atomic_load(&steps),
                  atomic_load(&raised_exceptions), atomic_load(&ended_jobs),
                  atomic_load(&closed_contexts));
    assert_true(atomic_load(&raised_exceptions) && atomic_load(&ended_jobs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_anything),
    };

    return cmocka_run_group_tests_name("python/random", tests, NULL, NULL);
}

/* The thread-specific keys of copies, which are not the system's, against the system's. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>

#include "tests/isolation/build.h"
#include "tests/isolation/closing.h"

/* Calls by return address: the compiler must not make jumps of them. */
#define NO_JUMPS "-fno-optimize-sibling-calls"

static const char keys_source[] =
    "#define _GNU_SOURCE\n"
    "#include <dlfcn.h>\n"
    "#include <pthread.h>\n"
    "#include <semaphore.h>\n"
    "#include <threads.h>\n"
    "int create(pthread_key_t *key, void (*gone)(void *)) { return pthread_key_create(key, gone); "
    "}\n"
    "int delete(pthread_key_t key) { return pthread_key_delete(key); }\n"
    "int set(pthread_key_t key, const void *value) { return pthread_setspecific(key, value); }\n"
    "void *get(pthread_key_t key) { return pthread_getspecific(key); }\n"
    "int create_c11(pthread_key_t *key, void (*gone)(void *)) { return tss_create(key, gone); }\n"
    "int delete_c11(pthread_key_t key) { tss_delete(key); return 0; }\n"
    "int set_c11(pthread_key_t key, const void *value) { return tss_set(key, (void *)value); }\n"
    "void *get_c11(pthread_key_t key) { return tss_get(key); }\n"
    "void *get_found(pthread_key_t key)\n"
    "{\n"
    "    void *(*found)(pthread_key_t) = dlsym(RTLD_DEFAULT, \"pthread_getspecific\");\n"
    "    return found(key);\n"
    "}\n"
    "/* A destructor that lasts. */\n"
    "sem_t begun, end;\n"
    "static pthread_key_t lasting;\n"
    "static void last(void *value) { (void)value; sem_post(&begun); sem_wait(&end); }\n"
    "int make_lasting(void)\n"
    "{\n"
    "    return sem_init(&begun, 0, 0) || sem_init(&end, 0, 0) || pthread_key_create(&lasting, "
    "last);\n"
    "}\n"
    "int set_lasting(int *value) { return pthread_setspecific(lasting, value); }\n";

/* Functions of keys: a copy's, or the system's. */
struct calls {
    int (*create)(pthread_key_t *key, void (*gone)(void *));
    int (*delete)(pthread_key_t key);
    int (*set)(pthread_key_t key, const void *value);
    void *(*get)(pthread_key_t key);
};

static const struct calls systems = {pthread_key_create, pthread_key_delete, pthread_setspecific,
                                     pthread_getspecific};

static struct exti_module *load_keys(struct exti_ctx *ctx)
{
    if (!file_exists(in_tmp("keys.so")))
        iso_build(keys_source, "keys.so", NO_JUMPS);
    return iso_load(ctx, in_tmp("keys.so"));
}

static void *call_named(struct exti_module *m, const char *name, const char *suffix)
{
    return iso_sym(m, iso_text("%s%s", name, suffix));
}

static struct calls calls_with(struct exti_module *m, const char *suffix)
{
    return (struct calls){
        (int (*)(pthread_key_t *, void (*)(void *)))call_named(m, "create", suffix),
        (int (*)(pthread_key_t))call_named(m, "delete", suffix),
        (int (*)(pthread_key_t, const void *))call_named(m, "set", suffix),
        (void *(*)(pthread_key_t))call_named(m, "get", suffix),
    };
}

static struct calls calls_of(struct exti_module *m)
{
    return calls_with(m, "");
}

static struct calls calls_c11_of(struct exti_module *m)
{
    return calls_with(m, "_c11");
}

/* ---- more than the system has ---------------------------------------------------------------- */

#define MANY (5 * PTHREAD_KEYS_MAX)

struct many {
    const struct calls *calls;
    pthread_key_t *keys;
    char *values;
};

static void set_many(const struct many *m)
{
    for (int i = 0; i < MANY; i++) {
        want(!m->calls->get(m->keys[i]));
        want_int(m->calls->set(m->keys[i], m->values + i), 0);
    }
    for (int i = 0; i < MANY; i++)
        want(m->calls->get(m->keys[i]) == m->values + i);
}

static void *set_many_on_thread(void *arg)
{
    struct many m = *(const struct many *)arg;

    m.values += MANY;
    set_many(&m);
    return NULL;
}

ISO_CASE(contexts_have_more_keys_than_a_process_has)
{
    static pthread_key_t keys[MANY];
    static char values[2 * MANY];
    struct exti_ctx *ctx[] = {iso_open("x"), iso_open("y")};
    struct calls calls[2];
    struct many m = {&calls[0], keys, values};
    pthread_t thread;

    for (int i = 0; i < 2; i++)
        calls[i] = calls_of(load_keys(ctx[i]));
    for (int i = 0; i < MANY; i++)
        want_int(calls[i % 2].create(&keys[i], NULL), 0);
    set_many(&m);
    want_int(pthread_create(&thread, NULL, set_many_on_thread, &m), 0);
    want_int(pthread_join(thread, NULL), 0);
    for (int i = 0; i < MANY; i++)
        want(calls[1].get(keys[i]) == values + i);
    close_and_want_unloaded(ctx[0], in_tmp("x/"));
    want_int(calls[1].set(keys[0], values), EINVAL);
    want(!calls[1].get(keys[0]) && calls[1].get(keys[1]) == values + 1);
    close_and_want_unloaded(ctx[1], in_tmp("y/"));
}

ISO_CASE(there_is_an_end_of_keys)
{
    struct exti_ctx *ctx = iso_open("x");
    struct calls calls = calls_of(load_keys(ctx));
    pthread_key_t key;
    int n = 0, rc;

    while ((rc = calls.create(&key, NULL)) == 0)
        n++;
    want_int(rc, EAGAIN);
    want_int(calls_c11_of(load_keys(ctx)).create(&key, NULL), thrd_error);
    want(n > 60000);
    want_int(calls.delete(key - 1000), 0);
    want_int(calls.create(&key, NULL), 0);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

static void use_up_keys(void)
{
    pthread_key_t key;

    while (pthread_key_create(&key, NULL) == 0)
        continue;
}

ISO_CASE(copies_have_keys_where_the_process_has_none_left)
{
    struct exti_ctx *ctx = iso_open("x");
    struct calls calls = calls_of(load_keys(ctx));
    pthread_key_t key;

    use_up_keys();
    want_int(calls.create(&key, free), 0);
    want_int(calls.set(key, malloc(1)), 0);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

ISO_CASE(the_first_context_needs_a_key_of_the_process)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    use_up_keys();
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_LOAD, &err);
    want_text(err.message, "keys of the process are in use");
}

/* ---- what each call does --------------------------------------------------------------------- */

static void want_errors(const struct calls *calls)
{
    pthread_key_t key, again;
    int value;

    want_int(calls->create(&key, NULL), 0);
    want_int(calls->set(key, &value), 0);
    want_int(calls->delete (key), 0);
    want(calls->set(key, &value) != 0);
    want(!calls->get(key));
    want_int(calls->create(&again, NULL), 0);
    want(again == key);
    want(!calls->get(again)); /* that value was of another key */
    want_int(calls->delete (again), 0);
}

ISO_CASE(a_key_that_is_made_again_has_no_value)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_keys(ctx);
    const struct calls calls = calls_of(m), calls_c11 = calls_c11_of(m);

    want_errors(&systems);
    want_errors(&calls);
    want_errors(&calls_c11);
    want_int(calls.delete(PTHREAD_KEYS_MAX), EINVAL);
    want_int(calls.delete((pthread_key_t)-1), EINVAL);
    want(!calls.get((pthread_key_t)-1));
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

ISO_CASE(each_call_knows_the_keys_of_the_others_and_of_the_program)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_keys(ctx);
    const struct calls calls = calls_of(m), calls_c11 = calls_c11_of(m);
    void *(*get_found)(pthread_key_t) = (void *(*)(pthread_key_t))iso_sym(m, "get_found");
    pthread_key_t keys[3];
    int values[3];

    want_int(calls.create(&keys[0], NULL), 0);
    want_int(calls_c11.create(&keys[1], NULL), 0);
    want_int(pthread_key_create(&keys[2], NULL), 0);
    for (int i = 0; i < 3; i++) {
        want_int((i % 2 ? calls : calls_c11).set(keys[i], &values[i]), 0);
        want(calls.get(keys[i]) == &values[i]);
        want(calls_c11.get(keys[i]) == &values[i]);
        want(get_found(keys[i]) == &values[i]);
        want((pthread_getspecific(keys[i]) == &values[i]) == (i == 2));
    }
    want_int(calls_c11.delete(keys[0]), 0);
    want_int(calls.delete(keys[1]), 0);
    want_int(calls_c11.delete(keys[2]), 0);
    want_int(pthread_setspecific(keys[2], values), EINVAL);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

/* ---- the end of a thread --------------------------------------------------------------------- */

#define KEYS 40
/* So often the destructor of a value that is set again runs.  The thread sanitizer leaves the thread
 * in the last round. */
#ifdef __SANITIZE_THREAD__
#define ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#define TRIES ROUNDS
#else
#define ROUNDS PTHREAD_DESTRUCTOR_ITERATIONS
#define TRIES (ROUNDS + 2)
#endif

/* What one thread does with keys, and how often their destructors ran. */
struct machine {
    const struct calls *calls;
    unsigned seed;
    struct slot {
        const struct calls *calls;
        pthread_key_t key;
        bool made;
        int again; /* the destructor sets the key so often */
        int ran;
    } slots[KEYS];
    unsigned long seen; /* a sum of what the calls have said */
};

static void run_destructor(void *value)
{
    struct slot *s = value;

    if (s->ran++ < s->again)
        s->calls->set(s->key, s);
}

static void take_step(struct machine *m)
{
    struct slot *s = &m->slots[rand_r(&m->seed) % KEYS];
    const int what = rand_r(&m->seed) % 8, again = rand_r(&m->seed) % (TRIES + 1);
    long said;

    if (what == 0) {
        said = s->made ? m->calls->delete (s->key) == 0
                       : m->calls->create(&s->key, again > 0 ? run_destructor : NULL) == 0;
        s->made = !s->made;
        s->again = again - 1;
    } else if (!s->made) {
        return;
    } else if (what < 4) {
        said = m->calls->set(s->key, what == 1 ? NULL : s) == 0;
    } else {
        said = m->calls->get(s->key) == s;
    }
    m->seen = m->seen * 31 + (unsigned long)said;
}

static void *be_machine(void *arg)
{
    struct machine *m = arg;

    for (int i = 0; i < KEYS; i++)
        m->slots[i].calls = m->calls;
    for (int i = 0; i < 1000; i++)
        take_step(m);
    return NULL;
}

static struct machine run_machine(const struct calls *calls, unsigned seed)
{
    struct machine m = {.calls = calls, .seed = seed};
    pthread_t thread;

    want_int(pthread_create(&thread, NULL, be_machine, &m), 0);
    want_int(pthread_join(thread, NULL), 0);
    for (int i = 0; i < KEYS; i++)
        if (m.slots[i].made)
            want_int(calls->delete (m.slots[i].key), 0);
    return m;
}

ISO_CASE(random_calls_and_ends_of_threads_do_what_those_of_the_system_do)
{
    struct exti_ctx *ctx = iso_open("x");
    const struct calls calls = calls_of(load_keys(ctx)), calls_c11 = calls_c11_of(load_keys(ctx));
    int ran = 0;

    for (unsigned seed = 1; seed <= 200; seed++) {
        const struct machine expected = run_machine(&systems, seed),
                             m = run_machine(seed % 2 ? &calls : &calls_c11, seed);

        want(m.seen == expected.seen);
        for (int i = 0; i < KEYS; i++) {
            want_int(m.slots[i].ran, expected.slots[i].ran);
            ran += m.slots[i].ran;
        }
    }
    want(ran > 1000);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

/* A destructor finds the values that have none of their own, as CPython's, whatever the order. */
struct order {
    const struct calls *calls;
    pthread_key_t value, seen_by;
    int found;
};

static void look(void *arg)
{
    struct order *o = arg;

    o->found += o->calls->get(o->value) == o;
    if (o->found < ROUNDS - 1)
        pthread_setspecific(o->seen_by, o);
}

static void *leave_value(void *arg)
{
    struct order *o = arg;

    o->calls->set(o->value, o);
    pthread_setspecific(o->seen_by, o);
    return NULL;
}

ISO_CASE(destructors_of_the_program_find_the_values_of_copies)
{
    struct exti_ctx *ctx = iso_open("x");
    const struct calls calls = calls_of(load_keys(ctx));
    struct order o = {.calls = &calls};
    pthread_t thread;

    want_int(calls.create(&o.value, NULL), 0);
    want_int(pthread_key_create(&o.seen_by, look), 0);
    want_int(pthread_create(&thread, NULL, leave_value, &o), 0);
    want_int(pthread_join(thread, NULL), 0);
    want_int(o.found, ROUNDS - 1);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

static void *close_on_thread(void *ctx)
{
    close_and_want_unloaded(ctx, in_tmp("x/"));
    return NULL;
}

ISO_CASE(a_context_is_not_unloaded_under_a_destructor)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_keys(ctx);
    sem_t *begun = iso_sym(m, "begun"), *end = iso_sym(m, "end");
    pthread_t closer;
    struct visitor v;

    want_int(call_int(m, "make_lasting"), 0);
    visit(&v, m, "set_lasting");
    sem_post(&v.end);
    sem_wait(begun);
    want_int(pthread_create(&closer, NULL, close_on_thread, ctx), 0);
    usleep(100000);
    want(is_mapped(in_tmp("x/")));
    sem_post(end);
    want_int(pthread_join(closer, NULL), 0);
    pthread_join(v.thread, NULL);
}

/* A thread that has a value under a key, is detached, and has another one. */
struct returner {
    struct exti_ctx *ctx;
    const struct calls *calls;
    pthread_key_t key;
    sem_t is_back, end;
};

static void *detach_and_return(void *arg)
{
    struct returner *r = arg;
    struct exti_error err = {0};

    want_int(r->calls->set(r->key, r), 0);
    want_exti(exti_ctx_detach_thread(r->ctx, 0, &err), 0, &err);
    want_int(r->calls->set(r->key, &r->key), 0);
    sem_post(&r->is_back);
    sem_wait(&r->end);
    return NULL;
}

ISO_CASE(a_detached_thread_that_sets_a_value_again_is_inside)
{
    struct exti_ctx *ctx = iso_open("x");
    const struct calls calls = calls_of(load_keys(ctx));
    struct returner r = {.ctx = ctx, .calls = &calls};
    struct close_report t;
    pthread_t thread;

    sem_init(&r.is_back, 0, 0);
    sem_init(&r.end, 0, 0);
    want_int(calls.create(&r.key, NULL), 0);
    want_int(pthread_create(&thread, NULL, detach_and_return, &r), 0);
    sem_wait(&r.is_back);
    want_int(calls.delete(r.key), 0);
    t = close_and_report(ctx);
    want_int((long)t.count, 1);
    want_text(t.text, "of the program is still in it");
    sem_post(&r.end);
    pthread_join(thread, NULL);
}

ISO_CASE(a_forked_child_has_the_values_of_its_thread)
{
    struct exti_ctx *ctx = iso_open("x");
    const struct calls calls = calls_of(load_keys(ctx));
    pthread_key_t key;
    pid_t pid;

    want_int(calls.create(&key, NULL), 0);
    want_int(calls.set(key, &key), 0);
    pid = fork();
    if (pid == 0)
        _exit(calls.get(key) != &key || calls.delete(key) != 0);
    want(iso_join(pid));
    want(calls.get(key) == &key);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_have_more_keys_than_a_process_has),
        cmocka_unit_test(there_is_an_end_of_keys),
        cmocka_unit_test(copies_have_keys_where_the_process_has_none_left),
        cmocka_unit_test(the_first_context_needs_a_key_of_the_process),
        cmocka_unit_test(a_key_that_is_made_again_has_no_value),
        cmocka_unit_test(each_call_knows_the_keys_of_the_others_and_of_the_program),
        cmocka_unit_test(random_calls_and_ends_of_threads_do_what_those_of_the_system_do),
        cmocka_unit_test(destructors_of_the_program_find_the_values_of_copies),
        cmocka_unit_test(a_context_is_not_unloaded_under_a_destructor),
        cmocka_unit_test(a_detached_thread_that_sets_a_value_again_is_inside),
        cmocka_unit_test(a_forked_child_has_the_values_of_its_thread),
    };

    return cmocka_run_group_tests_name("isolation/thread_keys", tests, NULL, NULL);
}

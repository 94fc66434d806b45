/* Machines that make, link, store, drop and collect at random, over a host of either kind and natives
 * that count, and a model that knows what can be reached.  Nothing may end early, and nothing may be
 * left that cannot be reached.
 *
 * EXTI_STEPS: how many steps all machines do together. */
#include "tests/unit/link/machine.h"

#define STEPS 20000 /* of one machine */

/* ---- machines -------------------------------------------------------------------------------- */

struct kind {
    bool toggles, own_collector;
    size_t budget;
};

static void machine_open(struct machine *m, uint64_t seed, const struct kind *k)
{
    struct exti_links_opts o;

    memset(m, 0, sizeof *m);
    m->random = seed * 0x9e3779b97f4a7c15u + 1;
    o = heap_opts(&m->heap);
    o.natives.traverse = native_traverse;
    o.natives.free_light = thing_free_light;
    o.budget = m->budget = k->budget;
    if (k->toggles)
        heap_toggles(&m->heap, &o);
    if (!k->own_collector) {
        o.natives.clear_weak = thing_clear_weak;
        o.natives.finalise = thing_finalise;
        o.natives.clear = thing_clear;
        o.natives.release = thing_release;
    }
    assert_int_equal(exti_links_open(&m->heap.links, &o, NULL), 0);
}

static void drop_all(struct machine *m)
{
    for (int n = 0; n < 3 && !m->wrong; n++) {
        while (m->heap.root_count || m->held_count) {
            drop_root(m);
            drop_held(m);
        }
        collect_all(m); /* finalisers may have revived some */
    }
}

static void machine_close(struct machine *m)
{
    heap_close(&m->heap);
    for (size_t i = 0; i < m->thing_count; i++)
        free(m->things[i]);
    free(m->things);
}

/* The step at which something was wrong, or 0. */
static long run(struct machine *m, long steps)
{
    struct exti_links_info info = {.size = sizeof info};

    for (long i = 1; i <= steps; i++) {
        step(m);
        if (m->wrong)
            return i;
    }
    drop_all(m);
    check_nothing_is_left(m);
    exti_links_info(m->heap.links, &info);
    expect(m, m->budget || m->heap.count == 0, "objects are left");
    expect(m, m->budget || (info.links == 0 && info.dead == 0 && info.circles == 0),
           "links are left");
    return m->wrong ? steps : 0;
}

/* Each of the kinds of machines has its share. */
static long steps_asked(void)
{
    const char *steps = getenv("EXTI_STEPS");

    return (steps ? strtol(steps, NULL, 10) : 3600000) / 9;
}

/* Each machine grows for a while, and is torn down. */
static void run_well(const struct kind *k)
{
    long ended = 0, cleared = 0, revived = 0;

    for (long seed = 1; seed <= (steps_asked() + STEPS - 1) / STEPS; seed++) {
        struct machine m;
        long at;

        machine_open(&m, (uint64_t)seed, k);
        at = run(&m, STEPS);
        if (at)
            print_message("seed %ld, step %ld: %s\n", seed, at, m.wrong);
        assert_int_equal(at, 0);
        ended += m.ended;
        cleared += m.cleared;
        revived += m.revived;
        machine_close(&m);
    }
    print_message("%ld natives ended, %ld cleared, %ld revived\n", ended, cleared, revived);
    assert_true(ended > 0 && revived > 0 && (cleared > 0) == !k->own_collector);
}

static void a_host_that_marks(void **state)
{
    (void)state;
    run_well(&(struct kind){.own_collector = true});
    run_well(&(struct kind){.own_collector = false});
}

static void a_host_that_toggles(void **state)
{
    (void)state;
    run_well(&(struct kind){.toggles = true, .own_collector = true});
    run_well(&(struct kind){.toggles = true, .own_collector = false});
}

/* Larger circles than it looks at may be left while any is alive, nothing ends early. */
static void a_budget_for_each_collection(void **state)
{
    (void)state;
    run_well(&(struct kind){.own_collector = true, .budget = 30});
    run_well(&(struct kind){.own_collector = false, .budget = 30});
    run_well(&(struct kind){.toggles = true, .own_collector = true, .budget = 30});
    run_well(&(struct kind){.toggles = true, .own_collector = false, .budget = 30});
}

/* ---- several threads -------------------------------------------------------------------------- */

#define THREADS 4

/* One machine, whose steps are taken with its lock, and whose dead are told of without it. */
struct crew {
    struct machine m;
    pthread_mutex_t lock;    /* as a GIL */
    pthread_mutex_t telling; /* guards the lists */
    struct object **to_tell, **told;
    size_t to_tell_count, to_tell_capacity, told_count, told_capacity;
    long steps;
};

/* With the lock: what others have told of ends, and its weak references give nothing any more. */
static void settle(struct crew *c)
{
    struct heap *h = &c->m.heap;
    size_t count;

    pthread_mutex_lock(&c->telling);
    count = c->told_count;
    while (h->gone_count)
        heap_push(&c->to_tell, &c->to_tell_count, &c->to_tell_capacity, h->gone[--h->gone_count]);
    pthread_mutex_unlock(&c->telling);
    exti_links_settle(h->links);
    pthread_mutex_lock(&c->telling);
    for (size_t i = 0; i < count; i++)
        heap_leave(c->told[i]);
    c->told_count -= count;
    if (c->told_count)
        memmove(c->told, c->told + count, c->told_count * sizeof *c->told);
    pthread_mutex_unlock(&c->telling);
}

/* Without the lock. */
static void tell_some(struct crew *c)
{
    struct object *o = NULL;

    pthread_mutex_lock(&c->telling);
    if (c->to_tell_count)
        o = c->to_tell[--c->to_tell_count];
    pthread_mutex_unlock(&c->telling);
    if (!o)
        return;
    exti_link_died(c->m.heap.links, o->in[0].number);
    pthread_mutex_lock(&c->telling);
    heap_push(&c->told, &c->told_count, &c->told_capacity, o);
    pthread_mutex_unlock(&c->telling);
}

static void *work(void *arg)
{
    struct crew *c = arg;
    bool go_on = true;

    while (go_on) {
        pthread_mutex_lock(&c->lock);
        if (random_below(&c->m, 10) == 0)
            settle(c);
        step(&c->m);
        go_on = c->steps-- > 0 && !c->m.wrong;
        pthread_mutex_unlock(&c->lock);
        tell_some(c);
    }
    return NULL;
}

static void threads_take_turns_and_tell_at_any_time(void **state)
{
    const struct kind k = {.toggles = true, .own_collector = true};
    pthread_t threads[THREADS];

    (void)state;
    for (long left = steps_asked(), seed = 1; left > 0; left -= STEPS, seed++) {
        struct crew c = {.steps = STEPS};

        machine_open(&c.m, (uint64_t)seed, &k);
        c.m.tells_later = true;
        pthread_mutex_init(&c.lock, NULL);
        pthread_mutex_init(&c.telling, NULL);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, &c), 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        do {
            settle(&c);
            tell_some(&c);
        } while (c.to_tell_count + c.told_count + c.m.heap.gone_count);
        c.m.tells_later = false;
        drop_all(&c.m);
        check_nothing_is_left(&c.m);
        if (c.m.wrong)
            print_message("seed %ld: %s\n", seed, c.m.wrong);
        assert_null(c.m.wrong);
        machine_close(&c.m);
        free(c.to_tell);
        free(c.told);
    }
}

static void control_faults_are_found(void **state)
{
    const int faults[] = {NOT_COUNTED, NOT_TRACED, COUNTED_TWICE, NOT_HANDED_OUT};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct machine m;
        long at;

        machine_open(&m, 1,
                     &(struct kind){.own_collector = true, .toggles = faults[i] == NOT_HANDED_OUT});
        m.fault = faults[i];
        at = run(&m, 1000);
        print_message("fault %d: step %ld: %s\n", faults[i], at, m.wrong ? m.wrong : "not found");
        assert_int_not_equal(at, 0);
        for (size_t n = 0; n < m.thing_count; n++)
            m.things[n]->n.count = 0;
        machine_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_marks),
        cmocka_unit_test(a_host_that_toggles),
        cmocka_unit_test(a_budget_for_each_collection),
        cmocka_unit_test(threads_take_turns_and_tell_at_any_time),
        cmocka_unit_test(control_faults_are_found),
    };

    return cmocka_run_group_tests_name("link/machine", tests, NULL, NULL);
}

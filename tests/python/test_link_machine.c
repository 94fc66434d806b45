/* Machines that make, link, store, call, drop and collect at random, over one host of either kind
 * and the Python objects of two contexts, each with a table and a GIL of its own, and a model that
 * knows what can be reached.  Nothing may end early, nothing may be left that cannot be reached,
 * and each object's count is how often it is referred to.  Contexts end meanwhile, and others take
 * their place.
 *
 * EXTI_STEPS: how many steps all machines do together. */
#include "tests/python/link_ends.h"

#define STEPS 20000 /* of one machine */
#define SHARES 4    /* of the steps: one of each kind of host, and one of several threads */

/* ---- steps ----------------------------------------------------------------------------------- */

/* Each with a weight of how often it is taken. */
static const struct step {
    uint32_t weight;
    void (*of_host)(struct machine *m);
    void (*of_side)(struct side *s); /* the thread is inside */
} choices[] = {
    {50, root_new, NULL},         {50, root_field, NULL},
    {80, drop_root, NULL},        {1, drop_roots, NULL},
    {100, store_in_object, NULL}, {7, collect_some, NULL},
    {1, collect_and_check, NULL}, {60, NULL, hold_new},
    {70, NULL, link_object},      {70, NULL, link_thing},
    {50, NULL, hand_out_some},    {50, NULL, root_thing},
    {50, NULL, hold_field},       {100, NULL, drop_held},
    {1, NULL, drop_many_held},    {70, NULL, store_in_thing},
    {70, NULL, use_thing},        {30, NULL, make_weak},
    {30, NULL, read_weak},        {5, NULL, collect_some_things},
    {20, NULL, take_dead},        {10, NULL, scan},
    {2, NULL, weaken_circles},
};

static const struct step *some_step(struct machine *m)
{
    uint32_t all = 0, n;
    size_t i;

    for (i = 0; i < ARRAY_SIZE(choices); i++)
        all += choices[i].weight;
    n = random_below(m, all);
    for (i = 0; n >= choices[i].weight; i++)
        n -= choices[i].weight;
    return &choices[i];
}

static void take_step(struct machine *m)
{
    const struct step *step = some_step(m);
    struct side *s = &m->sides[random_below(m, TABLES)];

    if (step->of_host) {
        step->of_host(m);
    } else {
        enter(s);
        step->of_side(s);
        leave(s);
    }
}

/* ---- machines -------------------------------------------------------------------------------- */

static void machine_open(struct machine *m, uint64_t seed, enum host host)
{
    memset(m, 0, sizeof *m);
    m->random = seed * 0x9e3779b97f4a7c15u + 1;
    m->host = host;
    m->heap.toggles = host != MARKS;
    pthread_mutex_init(&m->telling, NULL);
    for (size_t k = 0; k < TABLES; k++) {
        m->sides[k].m = m;
        m->sides[k].number = k;
        pthread_rwlock_init(&m->sides[k].lives, NULL);
        side_open(&m->sides[k]);
        table_open(&m->sides[k]);
    }
}

static void machine_free(struct machine *m)
{
    for (size_t k = 0; k < TABLES; k++) {
        free(m->sides[k].held.all);
        pthread_rwlock_destroy(&m->sides[k].lives);
    }
    heap_close(&m->heap);
    for (size_t i = 0; i < m->ruins.count; i++)
        free(m->ruins.all[i]);
    free(m->ruins.all);
    free(m->things.all);
    free(m->to_tell.all);
    free(m->told.all);
    pthread_mutex_destroy(&m->telling);
}

static void machine_close(struct machine *m)
{
    for (size_t k = 0; k < TABLES; k++)
        side_close(&m->sides[k]);
    machine_free(m);
}

static void drop_all(struct machine *m)
{
    long revived;

    do {
        revived = m->revived;
        m->heap.root_count = 0;
        for (int k = 0; k < TABLES; k++) {
            enter(&m->sides[k]);
            drop_all_held(&m->sides[k]);
            leave(&m->sides[k]);
        }
        collect_all(m);
    } while (m->revived != revived && !m->wrong);
}

/* Nothing is left of anything, and weak references say so. */
static void check_all_has_ended(struct machine *m)
{
    drop_all(m);
    if (m->wrong)
        return;
    check_nothing_is_left(m);
    expect(m, m->things.count == 0, "natives are left");
    expect(m, m->heap.count == 0, "objects are left");
    for (int k = 0; k < TABLES; k++) {
        struct exti_links_info info = {.size = sizeof info};

        exti_links_info(links_of(&m->sides[k]), &info);
        expect(m, info.links == 0 && info.dead == 0, "links are left");
        enter(&m->sides[k]);
        for (size_t i = 0; i < m->ruins.count; i++)
            if (m->ruins.all[i]->side == &m->sides[k] && m->ruins.all[i]->weak)
                expect(m, !node_weak(&m->sides[k], m->ruins.all[i]),
                       "a weak reference gives what has ended");
        leave(&m->sides[k]);
    }
}

/* The step at which something was wrong, or 0. */
static long run(struct machine *m, long steps)
{
    for (long i = 1; i <= steps; i++) {
        if (i == steps / 2 && !m->fault)
            renew(m);
        take_step(m);
        if (m->wrong)
            return i;
    }
    check_all_has_ended(m);
    return m->wrong ? steps : 0;
}

/* Each kind of machine has its share. */
static long steps_asked(void)
{
    const char *steps = getenv("EXTI_STEPS");

    return (steps ? strtol(steps, NULL, 10) : 4 * STEPS) / SHARES;
}

/* Each machine grows for a while, and is torn down. */
static void run_well(enum host host)
{
    long ended = 0, revived = 0, raised = 0, closed = 0;

    for (long left = steps_asked(), seed = 1; left > 0; left -= STEPS, seed++) {
        struct machine m;
        long at;

        machine_open(&m, (uint64_t)seed, host);
        at = run(&m, STEPS);
        if (at)
            print_message("seed %ld, step %ld: %s\n", seed, at, m.wrong);
        assert_int_equal(at, 0);
        machine_close(&m);
        assert_null(m.wrong);
        ended += m.ended;
        revived += m.revived;
        raised += m.raised;
        closed += m.closed;
    }
    print_message("%ld natives ended, %ld revived; %ld exceptions, %ld contexts closed\n", ended,
                  revived, raised, closed);
    assert_true(ended > 0 && revived > 0 && raised > 0 && closed > 0);
}

static void a_host_that_marks(void **state)
{
    (void)state;
    run_well(MARKS);
}

static void a_host_that_toggles(void **state)
{
    (void)state;
    run_well(TOGGLES);
}

/* It stops all at times. */
static void a_host_that_toggles_and_marks(void **state)
{
    (void)state;
    run_well(TOGGLES_AND_MARKS);
}

/* ---- several threads ------------------------------------------------------------------------- */

#define THREADS 4

/* One machine, whose steps are taken with its lock.  Threads tell of the dead without a lock, and
 * run other Python code with the GIL alone.  The lock is taken before a GIL: code of a context may
 * let go of its GIL at any time, and wait for it. */
struct crew {
    struct machine m;
    pthread_mutex_t lock;
    long steps;
};

/* Without the lock. */
static void churn(struct side *s)
{
    pthread_rwlock_rdlock(&s->lives);
    host_must(extipy_enter(s->c, NULL));
    s->py.decref(s->py.call(s->churn, s->none, NULL));
    host_must(extipy_leave(s->c, NULL));
    pthread_rwlock_unlock(&s->lives);
}

static void *work(void *arg)
{
    struct crew *c = arg;
    bool go_on = true;
    uint32_t chance;

    while (go_on) {
        pthread_mutex_lock(&c->lock);
        if (c->steps == STEPS / 2)
            renew(&c->m);
        take_step(&c->m);
        go_on = c->steps-- > 0 && !c->m.wrong;
        chance = random_below(&c->m, 8 * TABLES);
        pthread_mutex_unlock(&c->lock);
        tell_one(&c->m);
        if (chance < TABLES)
            churn(&c->m.sides[chance]);
    }
    return NULL;
}

static void run_crew(struct crew *c, long seed, enum host host)
{
    pthread_t threads[THREADS];

    machine_open(&c->m, (uint64_t)seed, host);
    c->m.tells_later = host == TOGGLES;
    pthread_mutex_init(&c->lock, NULL);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, c), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_mutex_destroy(&c->lock);
    c->m.tells_later = false;
    if (!c->m.wrong)
        check_all_has_ended(&c->m);
}

static void threads_take_turns_and_tell_at_any_time(void **state)
{
    (void)state;
    for (long left = steps_asked(), seed = 1; left > 0; left -= STEPS, seed++) {
        struct crew c = {.steps = STEPS};

        run_crew(&c, seed, seed % 4 ? TOGGLES : MARKS);
        if (c.m.wrong)
            print_message("seed %ld, %ld steps left: %s\n", seed, c.steps, c.m.wrong);
        assert_null(c.m.wrong);
        machine_close(&c.m);
        assert_null(c.m.wrong);
    }
}

/* ---- controls -------------------------------------------------------------------------------- */

/* Tables that may have natives which have ended; nobody looks at them any more. */
static struct exti_links *ruined[16];

/* The contexts end with all that is in them. */
static void ruin(struct machine *m)
{
    static size_t count;

    for (size_t k = 0; k < TABLES; k++) {
        assert_true(count < ARRAY_SIZE(ruined));
        ruined[count++] = links_of(&m->sides[k]);
        m->heap.tables[k].links = NULL;
        context_close(&m->sides[k]);
    }
    machine_free(m);
}

static void control_faults_are_found(void **state)
{
    static const struct {
        int fault;
        enum host host;
        long steps; /* within which it is found */
    } faults[] = {
        {NOT_COUNTED, MARKS, 1000},
        {NOT_COUNTED, TOGGLES, 1000},
        {NOT_HANDED_OUT, TOGGLES, 1000},
        {WEAK_NOT_HANDED_OUT, TOGGLES, 200000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct machine m;
        long at;

        machine_open(&m, 1, faults[i].host);
        m.fault = faults[i].fault;
        at = run(&m, faults[i].steps);
        print_message("fault %d: step %ld: %s\n", m.fault, at, m.wrong ? m.wrong : "not found");
        ruin(&m);
        assert_int_not_equal(at, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_marks),
        cmocka_unit_test(a_host_that_toggles),
        cmocka_unit_test(a_host_that_toggles_and_marks),
        cmocka_unit_test(threads_take_turns_and_tell_at_any_time),
        cmocka_unit_test(control_faults_are_found),
    };

    return cmocka_run_group_tests_name("python/link_machine", tests, NULL, NULL);
}

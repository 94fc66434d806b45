/* Circles that go through both heaps, and natives without a collector of their own. */
#include "tests/unit/link/heap.h"

#include "base/mem.h"

struct thing {
    struct native n;                        /* first */
    int weak, finalised, cleared, released; /* in which order; 0: not */
    bool revives;
};

static int order;

static void clear_weak(void *user, void *native)
{
    (void)user;
    ((struct thing *)native)->weak = ++order;
}

static void finalise(void *user, void *native)
{
    struct thing *t = native;

    (void)user;
    if (t->finalised)
        return;
    t->finalised = ++order;
    t->n.count += t->revives;
}

static void clear(void *user, void *native)
{
    struct thing *t = native;

    (void)user;
    t->cleared = ++order;
    for (int i = 0; i < FIELDS; i++) {
        struct native *of = t->n.fields[i];

        t->n.fields[i] = NULL;
        if (of)
            of->count--;
    }
}

static void release(void *user, void *native)
{
    struct thing *t = native;

    (void)user;
    if (--t->n.count == 0)
        t->released = ++order;
}

static void take_apart(struct exti_natives *n)
{
    n->clear_weak = clear_weak;
    n->finalise = finalise;
    n->clear = clear;
    n->release = release;
}

static void open_heap(struct heap *h, bool own_collector)
{
    struct exti_links_opts o = heap_opts(h);

    *h = (struct heap){0};
    order = 0;
    o.natives.traverse = native_traverse;
    if (!own_collector)
        take_apart(&o.natives);
    assert_int_equal(exti_links_open(&h->links, &o, NULL), 0);
}

static struct object *link_shell(struct heap *h, struct thing *t)
{
    struct object *o = heap_new(h);

    *t = (struct thing){.n.count = BASE};
    assert_int_equal(exti_link_host(h->links, (exti_host_word)o, t, 0), 0);
    return o;
}

static struct object *link_proxy(struct heap *h, struct thing *t)
{
    struct object *o = heap_new(h);

    *t = (struct thing){.n.count = BASE};
    o->in[0].native = t;
    assert_int_equal(exti_link_native(h->links, (exti_host_word)o, t), 0);
    return o;
}

static void refer(struct thing *from, struct thing *to)
{
    from->n.fields[0] = &to->n;
    to->n.count++;
}

static struct exti_links_info info_of(const struct heap *h)
{
    struct exti_links_info info = {.size = sizeof info};

    assert_int_equal(exti_links_info(h->links, &info), 0);
    return info;
}

/* The host's object refers to the proxy of a native, which refers to the object's shell. */
static void a_circle_through_both_heaps_dies(void **state)
{
    (void)state;
    for (int own_collector = 0; own_collector < 2; own_collector++) {
        struct thing shell, native;
        struct object *o;
        struct heap h;
        size_t root;

        open_heap(&h, own_collector);
        o = link_shell(&h, &shell);
        o->fields[2] = link_proxy(&h, &native);
        refer(&native, &shell);
        root = heap_root(&h, o);
        heap_collect(&h, EXTI_LINKS_ALL);
        assert_int_equal(h.count, 2); /* held by the host */
        h.roots[root] = NULL;
        native.n.count++;
        heap_collect(&h, EXTI_LINKS_ALL);
        assert_int_equal(h.count, 2); /* by native code */
        assert_int_equal(info_of(&h).links, 2);
        native.n.count--;
        heap_collect(&h, EXTI_LINKS_YOUNG);
        assert_int_equal(h.count, 2);
        heap_collect(&h, EXTI_LINKS_ALL);
        assert_int_equal(h.count, 0);
        assert_int_equal(info_of(&h).links, 0);
        assert_int_equal(h.told, 1);
        if (own_collector) {
            assert_ptr_equal(exti_links_next_dead(h.links), &native);
            assert_int_equal(native.n.count, 1);
            assert_int_equal(shell.n.count, 1); /* the native's */
        } else {
            assert_int_equal(info_of(&h).circles, 2);
            assert_int_equal(exti_links_clear_circles(h.links), 2);
            assert_true(native.released && shell.released);
            assert_int_equal(exti_links_clear_circles(h.links), 0);
        }
        assert_null(exti_links_next_dead(h.links));
        heap_close(&h);
    }
}

/* The last to be cleared of one step comes before the first of the next. */
static void circles_are_taken_apart_as_pep_442_says(void **state)
{
    struct thing t[5];
    struct heap h;
    int last_weak = 0, first_final = INT_MAX, last_final = 0, first_clear = INT_MAX;

    (void)state;
    open_heap(&h, false);
    for (size_t i = 0; i < 3; i++)
        link_proxy(&h, &t[i]);
    t[3] = t[4] = (struct thing){0}; /* without a link */
    refer(&t[0], &t[1]);
    refer(&t[1], &t[3]);
    refer(&t[3], &t[0]);
    refer(&t[2], &t[4]); /* no circle: held by nobody */
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_null(exti_links_next_dead(h.links));
    assert_int_equal(exti_links_clear_circles(h.links), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_true(t[i].weak && t[i].finalised && t[i].cleared && t[i].released);
        last_weak = t[i].weak > last_weak ? t[i].weak : last_weak;
        first_final = t[i].finalised < first_final ? t[i].finalised : first_final;
        last_final = t[i].finalised > last_final ? t[i].finalised : last_final;
        first_clear = t[i].cleared < first_clear ? t[i].cleared : first_clear;
    }
    assert_true(last_weak < first_final && last_final < first_clear);
    heap_close(&h);
}

/* With all that it refers to.  The others are cleared. */
static void a_finaliser_may_revive(void **state)
{
    struct thing t[4];
    struct heap h;

    (void)state;
    open_heap(&h, false);
    for (size_t i = 0; i < 4; i++)
        link_proxy(&h, &t[i]);
    refer(&t[0], &t[1]);
    refer(&t[1], &t[0]);
    refer(&t[2], &t[3]);
    refer(&t[3], &t[2]);
    t[0].revives = true;
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(exti_links_clear_circles(h.links), 2);
    assert_false(t[0].cleared || t[1].cleared);
    assert_true(t[2].released && t[3].released);
    assert_int_equal(t[0].n.count, 2);
    assert_int_equal(t[1].n.count, 1);
    /* Linked anew, it dies without another finaliser. */
    t[0].n.count += BASE - 1;
    assert_int_equal(exti_link_native(h.links, (exti_host_word)heap_new(&h), &t[0]), 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    t[0].revives = false;
    assert_int_equal(exti_links_clear_circles(h.links), 2);
    assert_true(t[0].released && t[1].released);
    heap_close(&h);
}

/* ---- long chains ----------------------------------------------------------------------------- */

#define CHAIN 20000

/* Each object refers to the proxy of a native, and that to the shell of the next. */
static struct thing *link_chain(struct heap *h)
{
    struct thing *t = calloc(2 * CHAIN, sizeof *t);
    struct object *first, *o;

    assert_non_null(t);
    first = o = link_shell(h, &t[0]);
    for (size_t i = 0; i + 2 < 2 * CHAIN; i += 2) {
        o->fields[0] = link_proxy(h, &t[i + 1]);
        o = link_shell(h, &t[i + 2]);
        refer(&t[i + 1], &t[i + 2]);
    }
    heap_root(h, first);
    return t;
}

static void a_long_chain_is_kept_and_dies(void **state)
{
    struct thing *t;
    struct heap h;

    (void)state;
    open_heap(&h, false);
    t = link_chain(&h);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 2 * CHAIN - 1);
    assert_int_equal(info_of(&h).links, 2 * CHAIN - 1);
    h.roots[0] = NULL;
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 0);
    assert_int_equal(exti_links_clear_circles(h.links), 2 * CHAIN - 1);
    heap_close(&h);
    free(t);
}

/* A host that says what it has marked. */
static void mark_and_say(struct heap *h)
{
    heap_mark_roots(h);
    for (size_t i = 0; i < h->count; i++)
        if (h->objects[i]->to && h->objects[i]->in[0].native)
            exti_link_marked(h->links, h->objects[i]->in[0].native);
}

static void a_host_may_say_what_it_has_marked(void **state)
{
    struct thing *t;
    struct heap h;

    (void)state;
    open_heap(&h, true);
    t = link_chain(&h);
    h.part = EXTI_LINKS_ALL;
    exti_link_marked(h.links, &t[1]); /* no collection has begun */
    mark_and_say(&h);
    assert_int_not_equal(exti_links_trace(h.links, EXTI_LINKS_ALL), 0);
    mark_and_say(&h);
    exti_link_marked(h.links, &(struct native){0}); /* is not known */
    while (exti_links_trace(h.links, EXTI_LINKS_ALL))
        mark_and_say(&h);
    exti_links_sweep(h.links, EXTI_LINKS_ALL);
    heap_finish(&h);
    assert_int_equal(h.count, 2 * CHAIN - 1);
    heap_close(&h);
    free(t);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* Each allocation of a collection fails in turn: what is dead then lives until the next. */
static void without_memory_nothing_ends(void **state)
{
    (void)state;
    for (long fails = 0;; fails++) {
        struct thing t[3];
        struct heap h;
        struct object *o;
        bool failed;

        open_heap(&h, false);
        o = link_shell(&h, &t[0]);
        o->fields[0] = link_proxy(&h, &t[1]);
        refer(&t[1], &t[0]);
        t[2] = (struct thing){0};
        t[1].n.fields[1] = &t[2].n;
        t[2].n.count++;
        h.part = EXTI_LINKS_ALL;
        heap_mark_roots(&h);
        exti__mem_fail_after(fails);
        while (exti_links_trace(h.links, EXTI_LINKS_ALL))
            ;
        exti_links_sweep(h.links, EXTI_LINKS_ALL);
        exti__mem_fail_after(-1);
        heap_finish(&h);
        failed = h.count != 0;
        assert_int_equal(info_of(&h).links, failed ? 2 : 0);
        heap_collect(&h, EXTI_LINKS_ALL);
        assert_int_equal(h.count, 0);
        exti__mem_fail_after(0);
        assert_int_equal(exti_links_clear_circles(h.links), 0);
        exti__mem_fail_after(-1);
        assert_int_equal(info_of(&h).circles, 3);
        assert_int_equal(exti_links_clear_circles(h.links), 3);
        assert_true(t[0].released && t[1].released && t[2].released);
        heap_close(&h);
        if (!failed)
            return;
    }
}

/* Two natives refer to each other, and to one whose proxy has died before. */
static void a_circle_whose_proxies_have_died_waits_for_memory(void **state)
{
    size_t settled = 0;

    (void)state;
    for (int fails = 0; !settled; fails++) {
        struct thing t[3];
        struct heap h = {0};
        struct exti_links_opts o = heap_opts(&h);

        o.natives.traverse = native_traverse;
        take_apart(&o.natives);
        heap_toggles(&h, &o);
        assert_int_equal(exti_links_open(&h.links, &o, NULL), 0);
        for (size_t i = 0; i < 3; i++) {
            t[i] = (struct thing){.n.count = BASE};
            assert_int_equal(exti_link_native(h.links, 8 * i + 8, &t[i]), 0);
        }
        refer(&t[0], &t[1]);
        refer(&t[1], &t[0]);
        t[1].n.fields[1] = &t[2].n;
        t[2].n.count++;
        for (size_t i = 3; i > 0; i--)
            exti_link_died(h.links, exti_link_number(h.links, &t[i - 1]));
        exti__mem_fail_after(fails);
        settled = exti_links_settle(h.links);
        exti__mem_fail_after(-1);
        assert_int_equal(info_of(&h).links, settled ? 0 : 3);
        if (!settled)
            assert_int_equal(exti_links_settle(h.links), 3);
        assert_int_equal(exti_links_clear_circles(h.links), 3);
        assert_true(t[0].released && t[1].released && t[2].released);
        /* The records are whole, and used again. */
        for (size_t i = 0; i < 3; i++) {
            t[i] = (struct thing){.n.count = BASE};
            assert_int_equal(exti_link_native(h.links, 8 * i + 8, &t[i]), 0);
            assert_true(exti_link_number(h.links, &t[i]) < 3);
        }
        heap_close(&h);
    }
}

/* Those that nobody has taken apart are given back. */
static void closing_gives_circles_back(void **state)
{
    struct thing t[2];
    struct heap h;

    (void)state;
    open_heap(&h, false);
    link_proxy(&h, &t[0]);
    link_proxy(&h, &t[1]);
    refer(&t[0], &t[1]);
    refer(&t[1], &t[0]);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(t[0].n.count, 2);
    heap_close(&h);
    assert_int_equal(t[0].n.count, 1);
    assert_int_equal(t[1].n.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_circle_through_both_heaps_dies),
        cmocka_unit_test(circles_are_taken_apart_as_pep_442_says),
        cmocka_unit_test(a_finaliser_may_revive),
        cmocka_unit_test(a_long_chain_is_kept_and_dies),
        cmocka_unit_test(a_host_may_say_what_it_has_marked),
        cmocka_unit_test(without_memory_nothing_ends),
        cmocka_unit_test(a_circle_whose_proxies_have_died_waits_for_memory),
        cmocka_unit_test(closing_gives_circles_back),
    };

    return cmocka_run_group_tests_name("link/circles", tests, NULL, NULL);
}

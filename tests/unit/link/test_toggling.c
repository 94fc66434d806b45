/* Links of a host that offers weak references, and tells of the dead. */
#include "tests/unit/link/heap.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

static void open_heap_that(struct heap *h, const struct exti_marking *marks)
{
    struct exti_links_opts o = heap_opts(h);

    *h = (struct heap){0};
    o.natives.traverse = native_traverse;
    heap_toggles(h, &o);
    o.marking = *marks;
    assert_int_equal(exti_links_open(&h->links, &o, NULL), 0);
}

static void open_heap(struct heap *h)
{
    open_heap_that(h, &(struct exti_marking){0});
}

static struct object *link_shell(struct heap *h, struct native *n)
{
    struct object *o = heap_new(h);

    *n = (struct native){.count = BASE};
    assert_int_equal(exti_link_host(h->links, (exti_host_word)o, n, 0), 0);
    heap_linked(&h->tables[0], o, n);
    return o;
}

static struct object *link_proxy(struct heap *h, struct native *n)
{
    struct object *o = heap_new(h);

    n->count += BASE;
    o->in[0].native = n;
    assert_int_equal(exti_link_native(h->links, (exti_host_word)o, n), 0);
    heap_linked(&h->tables[0], o, n);
    return o;
}

static void refer(struct native *from, struct native *to)
{
    from->fields[0] = to;
    to->count++;
}

static struct exti_links_info info_of(const struct heap *h)
{
    struct exti_links_info info = {.size = sizeof info};

    assert_int_equal(exti_links_info(h->links, &info), 0);
    return info;
}

/* ---- strong and weak ------------------------------------------------------------------------- */

static void what_is_handed_out_is_kept(void **state)
{
    struct native n;
    struct heap h;
    struct object *o;

    (void)state;
    open_heap(&h);
    o = link_shell(&h, &n);
    assert_false(o->in[0].strong);
    assert_int_equal(exti_link_hand_out(h.links, &n), 0);
    assert_int_equal(exti_link_hand_out(h.links, &n), 0);
    assert_true(o->in[0].strong);
    n.count++;
    assert_int_equal(exti_links_scan(h.links, 0), 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 1);
    assert_int_equal(info_of(&h).strong, 1);
    n.count--; /* an inlined Py_DECREF tells nobody */
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 1);
    assert_int_equal(exti_links_scan(h.links, 0), 1);
    assert_int_equal(info_of(&h).strong, 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 0);
    assert_int_equal(info_of(&h).links, 1); /* it has not been told yet */
    assert_int_equal(heap_tell(&h), 1);
    assert_int_equal(info_of(&h).links, 0);
    assert_int_equal(h.told, 1);
    assert_ptr_equal(exti_links_next_dead(h.links), &n);
    assert_int_equal(n.count, 1);
    heap_close(&h);
}

/* Its native lives by the base, and by native code; it lives by the host alone. */
static void a_proxy_is_never_kept(void **state)
{
    struct native n = {.count = 1};
    struct heap h;
    struct object *o;

    (void)state;
    open_heap(&h);
    o = link_proxy(&h, &n);
    assert_int_equal(exti_link_hand_out(h.links, &n), 0);
    assert_false(o->in[0].strong);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(heap_tell(&h), 1);
    assert_int_equal(n.count, 1);
    assert_int_equal(exti_link_to_host(h.links, &n), 0);
    assert_int_equal(exti_link_number(h.links, &n), UINT32_MAX);
    assert_int_equal(exti_link_hand_out(h.links, &n), 0); /* has no link */
    assert_null(exti_links_next_dead(h.links));
    heap_close(&h);
}

/* The native leads to the new proxy, whenever the end of the other is told. */
static void a_proxy_that_is_gone_is_replaced(void **state)
{
    struct native n = {.count = 1};
    struct heap h;
    struct object *o;

    (void)state;
    open_heap(&h);
    link_proxy(&h, &n);
    heap_collect(&h, EXTI_LINKS_ALL);
    o = link_proxy(&h, &n);
    heap_root(&h, o);
    assert_int_equal(n.count, 1 + 2 * BASE);
    assert_ptr_equal(exti_link_to_host(h.links, &n), o);
    assert_int_equal(info_of(&h).links, 2);
    assert_int_equal(heap_tell(&h), 1);
    assert_int_equal(n.count, 1 + BASE);
    assert_ptr_equal(exti_link_to_host(h.links, &n), o);
    assert_int_equal(info_of(&h).links, 1);
    heap_close(&h);
    assert_int_equal(n.count, 1);
}

/* Each scan goes on where the last one stopped. */
static void a_scan_looks_at_some(void **state)
{
    struct native n[10];
    struct heap h;

    (void)state;
    open_heap(&h);
    for (size_t i = 0; i < 10; i++) {
        link_shell(&h, &n[i]);
        assert_int_equal(exti_link_hand_out(h.links, &n[i]), 0);
        n[i].count += i % 2 ? 1 : 0;
    }
    for (size_t round = 0, weak = 0; round < 4; round++) {
        weak += exti_links_scan(h.links, 3);
        assert_true(weak >= round && weak <= 5);
        assert_int_equal(info_of(&h).strong, 10 - weak);
    }
    assert_int_equal(info_of(&h).strong, 5);
    assert_int_equal(exti_links_scan(h.links, 100), 0);
    for (size_t i = 0; i < 10; i++)
        n[i].count = BASE;
    for (int round = 0; round < 5; round++)
        assert_int_equal(exti_links_scan(h.links, 1), 1);
    assert_int_equal(exti_links_scan(h.links, 1), 0);
    heap_close(&h);
}

static void what_cannot_be_kept_is_not_handed_out(void **state)
{
    struct native n;
    struct heap h;
    struct object *o;

    (void)state;
    open_heap(&h);
    o = link_shell(&h, &n);
    o->gone = true;
    assert_int_equal(exti_link_hand_out(h.links, &n), EXTI_E_HOOK);
    assert_int_equal(info_of(&h).strong, 0);
    heap_close(&h);
}

/* ---- circles --------------------------------------------------------------------------------- */

struct circle {
    struct heap h;
    struct native shell, native, middle; /* the native refers to the middle, that to the shell */
    struct object *object, *proxy;       /* the object refers to the proxy */
    size_t root;
};

static void make_circle_of(struct circle *c, const struct exti_marking *marks)
{
    open_heap_that(&c->h, marks);
    c->native = c->middle = (struct native){0};
    c->object = link_shell(&c->h, &c->shell);
    c->proxy = link_proxy(&c->h, &c->native);
    c->object->fields[0] = c->proxy;
    refer(&c->native, &c->middle);
    assert_int_equal(exti_link_hand_out(c->h.links, &c->shell), 0);
    refer(&c->middle, &c->shell);
    c->root = heap_root(&c->h, c->object);
}

static void make_circle(struct circle *c)
{
    make_circle_of(c, &(struct exti_marking){0});
}

/* The host has its proxy alone, and the table does not keep the object. */
static void make_weak_circle(struct circle *c)
{
    make_circle(c);
    c->object->fields[0] = NULL;
    c->h.roots[c->root] = c->proxy;
    assert_int_equal(exti_links_weaken_circles(c->h.links), 1);
}

static void a_circle_is_the_hosts_to_find(void **state)
{
    struct circle c;

    (void)state;
    make_circle(&c);
    c.h.roots[c.root] = NULL;
    exti_links_scan(c.h.links, 0);
    heap_collect(&c.h, EXTI_LINKS_ALL);
    assert_int_equal(c.h.count, 2); /* without it, for ever */
    assert_int_equal(exti_links_weaken_circles(c.h.links), 1);
    assert_false(c.object->in[0].strong);
    heap_collect(&c.h, EXTI_LINKS_ALL);
    assert_int_equal(c.h.count, 0);
    assert_int_equal(heap_tell(&c.h), 2);
    assert_ptr_equal(exti_links_next_dead(c.h.links), &c.native);
    assert_int_equal(c.shell.count, 1);
    heap_close(&c.h);
}

/* As long as the host has one of its objects, it has them all. */
static void a_circle_that_the_host_has_is_kept(void **state)
{
    struct circle c;

    (void)state;
    make_weak_circle(&c);
    for (int n = 0; n < 3; n++) {
        heap_collect(&c.h, EXTI_LINKS_ALL);
        assert_int_equal(c.h.count, 3); /* and a hub for the middle */
        assert_int_equal(exti_links_weaken_circles(c.h.links), 1);
    }
    heap_close(&c.h);
}

/* Native code may then put what the circle has elsewhere. */
static void handing_out_undoes_it(void **state)
{
    struct circle c;

    (void)state;
    make_weak_circle(&c);
    assert_int_equal(exti_link_hand_out(c.h.links, &c.native), 0);
    assert_true(c.object->in[0].strong);
    assert_int_equal(c.proxy->in[0].repeated_count, 0);
    c.middle.fields[0] = NULL; /* native code has the reference now */
    c.h.roots[c.root] = NULL;
    heap_collect(&c.h, EXTI_LINKS_ALL);
    heap_tell(&c.h);
    assert_int_equal(c.h.count, 1);
    assert_ptr_equal(exti_link_to_host(c.h.links, &c.shell), c.object);
    heap_close(&c.h);
}

/* The finaliser of a native whose proxy is gone may put it where native code has it, and with it the
 * shells that it refers to: of that the host does not hear. */
static void what_ends_has_its_shells(void **state)
{
    struct circle c;

    (void)state;
    make_weak_circle(&c);
    c.h.roots[c.root] = c.object;
    heap_collect(&c.h, EXTI_LINKS_ALL);
    assert_int_equal(heap_tell(&c.h), 1);
    assert_ptr_equal(exti_links_next_dead(c.h.links), &c.native); /* is revived */
    c.h.roots[c.root] = NULL;
    heap_collect(&c.h, EXTI_LINKS_ALL);
    assert_int_equal(heap_tell(&c.h), 0);
    assert_ptr_equal(exti_link_to_host(c.h.links, &c.shell), c.object);
    heap_close(&c.h);
}

/* So it is in a collection for which the host stops and marks. */
static void what_ends_in_a_sweep_has_its_shells(void **state)
{
    struct circle c;

    (void)state;
    make_circle_of(&c, &(struct exti_marking){heap_survives, heap_keep});
    c.h.roots[c.root] = c.object;
    c.object->fields[0] = NULL;
    assert_int_equal(exti_links_weaken_circles(c.h.links), 1);
    c.h.part = EXTI_LINKS_ALL;
    heap_mark_roots(&c.h);
    while (exti_links_trace(c.h.links, EXTI_LINKS_ALL))
        continue;
    exti_links_sweep(c.h.links, EXTI_LINKS_ALL);
    assert_true(c.object->in[0].strong);
    assert_ptr_equal(exti_links_next_dead(c.h.links), &c.native);
    c.proxy->in[0].linked = false; /* has no link any more that it could be told of */
    heap_finish(&c.h);
    assert_int_equal(c.h.count, 1);
    heap_close(&c.h);
}

static void what_native_code_has_is_no_dead_circle(void **state)
{
    struct circle c;

    (void)state;
    make_circle(&c);
    c.middle.count++;
    c.h.roots[c.root] = NULL;
    assert_int_equal(exti_links_weaken_circles(c.h.links), 0);
    heap_collect(&c.h, EXTI_LINKS_ALL);
    assert_true(c.object->in[0].strong);
    heap_close(&c.h);
}

/* A host that cannot repeat a reference keeps the object as before. */
static void what_cannot_be_repeated_stays_strong(void **state)
{
    struct circle c;

    (void)state;
    make_circle(&c);
    c.object->gone = true;
    assert_int_equal(exti_links_weaken_circles(c.h.links), 0);
    assert_int_equal(info_of(&c.h).strong, 1);
    assert_int_equal(c.proxy->in[0].repeated_count, 0);
    c.object->gone = false;
    c.proxy->gone = true; /* no hub */
    assert_int_equal(exti_links_weaken_circles(c.h.links), 0);
    c.proxy->gone = false;
    assert_int_equal(exti_links_weaken_circles(c.h.links), 1);
    heap_close(&c.h);
}

static void without_memory_it_stays_strong(void **state)
{
    (void)state;
    for (long fails = 0;; fails++) {
        struct circle c;
        size_t weak;

        make_circle(&c);
        exti__mem_fail_after(fails);
        weak = exti_links_weaken_circles(c.h.links);
        exti__mem_fail_after(-1);
        assert_int_equal(c.object->in[0].strong, weak == 0);
        assert_int_equal(exti_links_weaken_circles(c.h.links), 1);
        heap_close(&c.h);
        if (weak) {
            assert_true(fails > 5);
            return;
        }
    }
}

/* ---- telling --------------------------------------------------------------------------------- */

static void telling_twice_is_telling_once(void **state)
{
    struct native n[3];
    struct heap h;
    uint32_t number[3];

    (void)state;
    open_heap(&h);
    for (size_t i = 0; i < 3; i++) {
        link_shell(&h, &n[i]);
        number[i] = exti_link_number(h.links, &n[i]);
    }
    for (size_t i = 0; i < 6; i++)
        exti_link_died(h.links, number[i % 3]);
    exti__mem_fail_after(0); /* none is needed */
    assert_int_equal(exti_links_settle(h.links), 3);
    exti__mem_fail_after(-1);
    assert_int_equal(exti_links_settle(h.links), 0);
    assert_int_equal(info_of(&h).dead, 3);
    heap_close(&h);
}

#define TELLERS 4
#define EACH 20000

struct teller {
    struct exti_links *links;
    uint32_t numbers[EACH];
    atomic_uint count, told;
    pthread_t id;
};

static atomic_bool all_made;

static void *tell(void *arg)
{
    struct teller *t = arg;

    while (!all_made || t->told < t->count)
        if (t->told < t->count) {
            exti_link_died(t->links, t->numbers[t->told]);
            t->told++;
        }
    return NULL;
}

/* On threads that have no lock, while the table grows and links end. */
static void any_thread_may_tell(void **state)
{
    static struct native natives[TELLERS * EACH];
    static struct teller tellers[TELLERS];
    size_t ended = 0;
    struct heap h;

    (void)state;
    open_heap(&h);
    all_made = false;
    for (size_t i = 0; i < TELLERS; i++) {
        tellers[i].links = h.links;
        tellers[i].count = tellers[i].told = 0;
        assert_int_equal(pthread_create(&tellers[i].id, NULL, tell, &tellers[i]), 0);
    }
    for (size_t i = 0; i < TELLERS * EACH; i++) {
        struct teller *t = &tellers[i % TELLERS];

        natives[i] = (struct native){.count = BASE + 1};
        assert_int_equal(exti_link_native(h.links, 8 * i + 8, &natives[i]), 0);
        t->numbers[t->count] = exti_link_number(h.links, &natives[i]);
        t->count++;
        if (i % 1000 == 0)
            ended += exti_links_settle(h.links);
    }
    all_made = true;
    for (size_t i = 0; i < TELLERS; i++)
        assert_int_equal(pthread_join(tellers[i].id, NULL), 0);
    ended += exti_links_settle(h.links);
    assert_int_equal(ended, TELLERS * EACH);
    assert_int_equal(info_of(&h).links, 0);
    for (size_t i = 0; i < TELLERS * EACH; i++)
        assert_int_equal(natives[i].count, 1);
    heap_close(&h);
}

static int asked;

static void please_collect(void *user)
{
    (void)user;
    asked++;
}

static void heavy_natives_ask_for_a_collection(void **state)
{
    struct native n;
    struct heap h = {0};
    struct exti_links_opts o = heap_opts(&h);

    (void)state;
    heap_toggles(&h, &o);
    o.pressure = 1000;
    o.please_collect = please_collect;
    assert_int_equal(exti_links_open(&h.links, &o, NULL), 0);
    asked = 0;
    for (int i = 1; i <= 25; i++) {
        exti_links_weigh(h.links, 100);
        exti_links_poll(h.links);
        assert_int_equal(asked, i / 10);
    }
    exti_links_weigh(h.links, -2500);
    exti_links_poll(h.links);
    exti_links_weigh(h.links, 999);
    exti_links_poll(h.links);
    assert_int_equal(asked, 2);
    exti_links_weigh(h.links, 1);
    exti_links_poll(h.links);
    assert_int_equal(asked, 3);
    /* And it settles what has died. */
    link_shell(&h, &n);
    exti_link_died(h.links, exti_link_number(h.links, &n));
    exti_links_poll(h.links);
    assert_int_equal(info_of(&h).links, 0);
    heap_close(&h);
}

static void options_are_checked(void **state)
{
    struct exti_links *links = NULL;
    struct heap h = {0};
    struct exti_links_opts good = heap_opts(&h), o;
    struct exti_error err;

    (void)state;
    heap_toggles(&h, &good);
    o = good;
    o.marking.keep = heap_keep;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "or both");
    o = good;
    o.toggling.weaken = NULL;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    o = good;
    o.toggling.forget = NULL;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "go together");
    o.toggling.refer = NULL;
    o.toggling.hub = NULL;
    assert_int_equal(exti_links_open(&links, &o, NULL), 0);
    assert_int_equal(exti_links_weaken_circles(links), 0);
    assert_int_equal(exti_links_trace(links, EXTI_LINKS_ALL), 0);
    exti_links_close(links);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_handed_out_is_kept),
        cmocka_unit_test(a_proxy_is_never_kept),
        cmocka_unit_test(a_proxy_that_is_gone_is_replaced),
        cmocka_unit_test(a_scan_looks_at_some),
        cmocka_unit_test(what_cannot_be_kept_is_not_handed_out),
        cmocka_unit_test(a_circle_is_the_hosts_to_find),
        cmocka_unit_test(a_circle_that_the_host_has_is_kept),
        cmocka_unit_test(handing_out_undoes_it),
        cmocka_unit_test(what_ends_has_its_shells),
        cmocka_unit_test(what_ends_in_a_sweep_has_its_shells),
        cmocka_unit_test(what_native_code_has_is_no_dead_circle),
        cmocka_unit_test(what_cannot_be_repeated_stays_strong),
        cmocka_unit_test(without_memory_it_stays_strong),
        cmocka_unit_test(telling_twice_is_telling_once),
        cmocka_unit_test(any_thread_may_tell),
        cmocka_unit_test(heavy_natives_ask_for_a_collection),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests_name("link/toggling", tests, NULL, NULL);
}

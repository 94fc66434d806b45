/* Links of a host that marks and moves its objects: what the rawrefcount of PyPy promises to its
 * cpyext, for objects that no collection has seen and for those that one has. */
#include "tests/unit/link/heap.h"

/* A link and its two sides.  The object is in a root slot while the host refers to it. */
struct pair {
    struct native native;
    size_t root;
};

enum { HOST = 1, LIGHT_HOST = 2, NATIVE = 4, STAYS = 8, IMMORTAL = 16, OLD = 32 };

static struct object *object_of(const struct heap *h, const struct pair *p)
{
    return h->roots[p->root];
}

static void link_pair(struct heap *h, struct pair *p, int how)
{
    struct object *o = heap_new(h);

    *p = (struct pair){.root = heap_root(h, o)};
    o->stays = (how & STAYS) != 0;
    o->immortal = (how & IMMORTAL) != 0;
    if (how & OLD)
        heap_collect(h, EXTI_LINKS_YOUNG);
    o = object_of(h, p);
    p->native.count = how & LIGHT_HOST ? LIGHT : BASE;
    if (how & NATIVE) {
        o->in[0].native = &p->native;
        assert_int_equal(exti_link_native(h->links, (exti_host_word)o, &p->native), 0);
    } else {
        assert_int_equal(exti_link_host(h->links, (exti_host_word)o, &p->native,
                                        how & LIGHT_HOST ? EXTI_LINK_LIGHT : 0),
                         0);
    }
    if (how & OLD) {
        heap_collect(h, EXTI_LINKS_YOUNG);
        assert_true(object_of(h, p)->old);
    }
}

static void drop_root(struct heap *h, struct pair *p)
{
    h->roots[p->root] = NULL;
}

static size_t links_of(const struct heap *h)
{
    struct exti_links_info info = {.size = sizeof info};

    assert_int_equal(exti_links_info(h->links, &info), 0);
    return info.links;
}

/* The link answers as its kind does. */
static void assert_linked(const struct heap *h, const struct pair *p, struct object *o, int how)
{
    assert_ptr_equal(exti_link_to_host(h->links, &p->native), o);
    assert_ptr_equal(exti_link_from_host(h->links, (exti_host_word)o),
                     how & NATIVE ? NULL : &p->native);
}

static void assert_unlinked(const struct heap *h, const struct pair *p)
{
    assert_int_equal(exti_link_to_host(h->links, &p->native), 0);
    assert_int_equal(links_of(h), 0);
}

/* It waits with a count of 1, was told of once, and is given once. */
static void assert_dead_once(struct heap *h, struct pair *p)
{
    assert_unlinked(h, p);
    assert_int_equal(h->told, 1);
    assert_int_equal(p->native.count, 1);
    assert_ptr_equal(exti_links_next_dead(h->links), &p->native);
    assert_null(exti_links_next_dead(h->links));
    assert_null(exti_links_next_dead(h->links));
    assert_int_equal(p->native.count, 1);
}

static void assert_nothing_dead(struct heap *h)
{
    assert_int_equal(h->told, 0);
    assert_null(exti_links_next_dead(h->links));
}

/* A light shell was freed, another native waits. */
static void assert_ended(struct heap *h, struct pair *p, int how)
{
    if (how & LIGHT_HOST) {
        assert_unlinked(h, p);
        assert_nothing_dead(h);
        assert_true(p->native.freed);
    } else {
        assert_dead_once(h, p);
    }
}

static const enum exti_links_part parts[] = {EXTI_LINKS_YOUNG, EXTI_LINKS_ALL};

/* ---- looking up ------------------------------------------------------------------------------ */

static void links_answer_both_ways(void **state)
{
    const int kinds[] = {HOST, LIGHT_HOST, NATIVE, HOST | OLD, LIGHT_HOST | OLD, NATIVE | OLD};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct heap h;
        struct pair p;

        heap_open(&h);
        link_pair(&h, &p, kinds[i]);
        assert_linked(&h, &p, object_of(&h, &p), kinds[i]);
        for (int n = 0; n < 3; n++) {
            struct object *before = object_of(&h, &p);

            heap_collect(&h, EXTI_LINKS_ALL);
            assert_ptr_not_equal(object_of(&h, &p), before);
            assert_linked(&h, &p, object_of(&h, &p), kinds[i]);
        }
        heap_close(&h);
        assert_int_equal(p.native.count, 0);
    }
}

static void what_has_no_link_answers_none(void **state)
{
    struct native n = {0};
    struct heap h;

    (void)state;
    heap_open(&h);
    assert_null(exti_link_from_host(h.links, (exti_host_word)heap_new(&h)));
    assert_int_equal(exti_link_to_host(h.links, &n), 0);
    assert_nothing_dead(&h);
    heap_collect(&h, EXTI_LINKS_YOUNG);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_nothing_dead(&h);
    heap_close(&h);
}

/* ---- references of native code --------------------------------------------------------------- */

/* Holds the object by the native alone, then lets go of that. */
static void held_by_native_code(int how, bool dies_at_minor)
{
    struct heap h;
    struct pair p;

    heap_open(&h);
    link_pair(&h, &p, how);
    p.native.count++;
    drop_root(&h, &p);
    for (int n = 0; n < 4; n++) {
        struct object *o;

        heap_collect(&h, parts[n % 2]);
        o = (struct object *)exti_link_to_host(h.links, &p.native);
        assert_non_null(o);
        assert_int_equal(h.count, 1);
        assert_ptr_equal(o, h.objects[0]);
        assert_linked(&h, &p, o, how);
    }
    p.native.count--;
    heap_collect(&h, EXTI_LINKS_YOUNG);
    assert_int_equal(links_of(&h), dies_at_minor ? 0 : 1);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 0);
    assert_ended(&h, &p, how);
    heap_close(&h);
}

static void native_code_keeps_an_object(void **state)
{
    (void)state;
    held_by_native_code(HOST, false);
    held_by_native_code(HOST | OLD, false);
}

static void native_code_keeps_an_object_with_a_light_shell(void **state)
{
    (void)state;
    held_by_native_code(LIGHT_HOST, false);
    held_by_native_code(LIGHT_HOST | OLD, false);
}

/* What it reaches is kept too. */
static void native_code_keeps_what_an_object_reaches(void **state)
{
    struct heap h;
    struct pair p;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, HOST);
    object_of(&h, &p)->fields[1] = heap_new(&h);
    p.native.count++;
    drop_root(&h, &p);
    for (int n = 0; n < 4; n++) {
        heap_collect(&h, parts[n % 2]);
        assert_int_equal(h.count, 2);
        assert_false(((struct object *)exti_link_to_host(h.links, &p.native))->fields[1]->immortal);
    }
    heap_close(&h);
}

/* The native is an object of its own, of which the host loses its proxy. */
static void native_code_does_not_keep_a_proxy(void **state)
{
    const int kinds[] = {NATIVE, NATIVE | STAYS, NATIVE | OLD, NATIVE | OLD | STAYS};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct heap h;
        struct pair p;

        heap_open(&h);
        link_pair(&h, &p, kinds[i]);
        p.native.count++;
        drop_root(&h, &p);
        heap_collect(&h, kinds[i] & OLD ? EXTI_LINKS_ALL : EXTI_LINKS_YOUNG);
        assert_unlinked(&h, &p);
        assert_int_equal(h.count, 0);
        assert_int_equal(p.native.count, 1);
        assert_nothing_dead(&h);
        heap_close(&h);
    }
}

/* ---- references of the host ------------------------------------------------------------------ */

static void held_by_host(int how)
{
    struct heap h;
    struct pair p;

    heap_open(&h);
    link_pair(&h, &p, how);
    for (int n = 0; n < 4; n++) {
        heap_collect(&h, parts[n % 2]);
        assert_linked(&h, &p, object_of(&h, &p), how);
    }
    drop_root(&h, &p);
    heap_collect(&h, EXTI_LINKS_YOUNG);
    assert_int_equal(links_of(&h), 1); /* it is old by now */
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_ended(&h, &p, how);
    heap_close(&h);
}

static void the_host_keeps_what_it_reaches(void **state)
{
    const int kinds[] = {HOST, LIGHT_HOST, NATIVE, NATIVE | STAYS};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        held_by_host(kinds[i]);
        held_by_host(kinds[i] | OLD);
    }
}

static void an_immortal_object_keeps_its_link(void **state)
{
    struct heap h;
    struct pair p;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, HOST | IMMORTAL);
    drop_root(&h, &p);
    for (int n = 0; n < 4; n++) {
        heap_collect(&h, parts[n % 2]);
        assert_linked(&h, &p, h.objects[0], HOST);
    }
    assert_nothing_dead(&h);
    heap_close(&h);
}

/* ---- references of nobody -------------------------------------------------------------------- */

static void held_by_nobody(int how)
{
    struct heap h;
    struct pair p;

    heap_open(&h);
    link_pair(&h, &p, how);
    drop_root(&h, &p);
    if (how & OLD) {
        heap_collect(&h, EXTI_LINKS_YOUNG);
        assert_int_equal(links_of(&h), 1);
        assert_nothing_dead(&h);
        heap_collect(&h, EXTI_LINKS_ALL);
    } else {
        heap_collect(&h, EXTI_LINKS_YOUNG);
    }
    assert_int_equal(h.count, 0);
    assert_ended(&h, &p, how);
    heap_close(&h);
}

static void what_nobody_refers_to_dies(void **state)
{
    const int kinds[] = {HOST, LIGHT_HOST, NATIVE, NATIVE | STAYS};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        held_by_nobody(kinds[i]);
        held_by_nobody(kinds[i] | OLD);
    }
}

static void the_dead_of_a_collection_are_told_of_once(void **state)
{
    struct pair p[100];
    struct heap h;
    int taken = 0;

    (void)state;
    heap_open(&h);
    for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
        link_pair(&h, &p[i], i % 2 ? HOST : NATIVE);
        drop_root(&h, &p[i]);
    }
    heap_collect(&h, EXTI_LINKS_YOUNG);
    assert_int_equal(h.told, 1);
    for (struct native *n; (n = exti_links_next_dead(h.links)); taken++)
        assert_int_equal(n->count, 1);
    assert_int_equal(taken, ARRAY_SIZE(p));
    heap_close(&h);
}

/* A light shell that native code still has when its object dies lives on by the count alone.  The
 * host has marked less than it should have, and is right by definition. */
static void a_link_may_end_before_its_native(void **state)
{
    struct heap h;
    struct pair p;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, LIGHT_HOST);
    p.native.count += 2;
    h.part = EXTI_LINKS_YOUNG;
    exti_links_sweep(h.links, EXTI_LINKS_YOUNG);
    assert_unlinked(&h, &p);
    assert_int_equal(p.native.count, 2);
    assert_false(p.native.freed);
    heap_close(&h);
}

/* ---- natives that end ------------------------------------------------------------------------ */

static void a_native_that_ends_has_a_marker(void **state)
{
    const exti_host_word marker = 7;
    struct heap h;
    struct pair p;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, NATIVE);
    assert_int_equal(exti_link_ending(h.links, marker, &p.native), EXTI_E_ARG);
    drop_root(&h, &p);
    heap_collect(&h, EXTI_LINKS_YOUNG);
    assert_dead_once(&h, &p);
    assert_int_equal(exti_link_to_host(h.links, &p.native), 0);
    assert_int_equal(exti_link_ending(h.links, marker, &p.native), 0);
    for (int n = 0; n < 4; n++) {
        assert_int_equal(exti_link_to_host(h.links, &p.native), marker);
        assert_null(exti_link_from_host(h.links, marker));
        heap_collect(&h, parts[n % 2]);
    }
    exti_link_ended(h.links, &p.native);
    assert_unlinked(&h, &p);
    exti_link_ended(h.links, &p.native); /* has none */
    heap_close(&h);
    assert_int_equal(p.native.count, 1);
}

/* Its code may make another link of it. */
static void a_dead_native_can_be_linked_again(void **state)
{
    struct heap h;
    struct pair p;
    struct object *o;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, NATIVE);
    drop_root(&h, &p);
    heap_collect(&h, EXTI_LINKS_YOUNG);
    assert_dead_once(&h, &p);
    o = heap_new(&h);
    p.root = heap_root(&h, o);
    p.native.count += BASE;
    assert_int_equal(exti_link_native(h.links, (exti_host_word)o, &p.native), 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_linked(&h, &p, object_of(&h, &p), NATIVE);
    assert_int_equal(p.native.count, BASE + 1);
    heap_close(&h);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void a_second_link_is_refused(void **state)
{
    struct heap h;
    struct pair p, other;
    struct object *o;

    (void)state;
    heap_open(&h);
    link_pair(&h, &p, HOST);
    link_pair(&h, &other, NATIVE);
    o = object_of(&h, &p);
    assert_int_equal(exti_link_host(h.links, (exti_host_word)heap_new(&h), &p.native, 0),
                     EXTI_E_ARG);
    assert_int_equal(exti_link_host(h.links, (exti_host_word)o, &(struct native){0}, 0),
                     EXTI_E_ARG);
    assert_int_equal(exti_link_native(h.links, (exti_host_word)o, &other.native), EXTI_E_ARG);
    assert_int_equal(exti_link_native(h.links, 0, &(struct native){0}), EXTI_E_ARG);
    assert_int_equal(exti_link_native(h.links, (exti_host_word)o, NULL), EXTI_E_ARG);
    assert_int_equal(exti_link_host(h.links, (exti_host_word)heap_new(&h), &(struct native){0}, 2),
                     EXTI_E_ARG);
    assert_int_equal(links_of(&h), 2);
    heap_close(&h);
}

static void options_are_checked(void **state)
{
    struct exti_links *links = NULL;
    struct exti_links_opts good = heap_opts(NULL), o;
    struct exti_error err;

    (void)state;
    o = good;
    o.natives.count = NULL;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "count");
    o = good;
    o.marking.keep = NULL;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "keep");
    o = good;
    o.light = o.base;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "above base");
    o = good;
    o.natives.free_light = NULL;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    o = good;
    o.natives.release = native_free_light;
    assert_exti(exti_links_open(&links, &o, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "go together");
    assert_exti(exti_links_open(&links, NULL, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_exti(exti_links_open(NULL, &good, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_null(links);
    exti_links_close(NULL);
    o = good;
    o.light = 0; /* and so no light links */
    assert_int_equal(exti_links_open(&links, &o, &err), 0);
    assert_int_equal(exti_link_host(links, 8, &o, EXTI_LINK_LIGHT), EXTI_E_ARG);
    exti_links_close(links);
}

/* Sweeps that end few, and that end most, for which the table has two ways; after each of them what
 * is left is found, and nothing else. */
static void links_are_found_after_a_sweep_that_ends(const size_t ending)
{
    enum { ALL = 100 };
    static struct pair pairs[2 * ALL];
    struct heap h;

    heap_open(&h);
    for (size_t i = 0; i < ALL; i++)
        link_pair(&h, &pairs[i], i % 3 ? 0 : NATIVE);
    for (size_t i = 0; i < ending; i++)
        drop_root(&h, &pairs[i]);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(links_of(&h), ALL - ending);
    for (size_t i = ALL; i < ALL + ending; i++)
        link_pair(&h, &pairs[i], 0);
    for (size_t i = 0; i < ending; i++)
        assert_int_equal(exti_link_to_host(h.links, &pairs[i].native), 0);
    for (size_t i = ending; i < ALL + ending; i++)
        assert_linked(&h, &pairs[i], object_of(&h, &pairs[i]), i < ALL && i % 3 == 0 ? NATIVE : 0);
    heap_close(&h);
}

static void links_are_found_after_sweeps_of_few_and_of_many(void **state)
{
    (void)state;
    for (size_t ending = 0; ending <= 100; ending += 10)
        links_are_found_after_a_sweep_that_ends(ending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_answer_both_ways),
        cmocka_unit_test(what_has_no_link_answers_none),
        cmocka_unit_test(native_code_keeps_an_object),
        cmocka_unit_test(native_code_keeps_an_object_with_a_light_shell),
        cmocka_unit_test(native_code_keeps_what_an_object_reaches),
        cmocka_unit_test(native_code_does_not_keep_a_proxy),
        cmocka_unit_test(the_host_keeps_what_it_reaches),
        cmocka_unit_test(an_immortal_object_keeps_its_link),
        cmocka_unit_test(what_nobody_refers_to_dies),
        cmocka_unit_test(the_dead_of_a_collection_are_told_of_once),
        cmocka_unit_test(a_link_may_end_before_its_native),
        cmocka_unit_test(a_native_that_ends_has_a_marker),
        cmocka_unit_test(a_dead_native_can_be_linked_again),
        cmocka_unit_test(a_second_link_is_refused),
        cmocka_unit_test(links_are_found_after_sweeps_of_few_and_of_many),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests_name("link/marking", tests, NULL, NULL);
}

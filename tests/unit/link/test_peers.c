/* Heaps that count, linked with each other: each is the host of the others, toggles, and at times
 * stops all of them and marks. */
#include "tests/unit/link/heap.h"

#define PEERS 3

/* What a native is to the other heaps. */
struct handle {
    struct peer *home;
    struct native *native; /* NULL: it has ended */
    bool marked;
};

struct peer {
    struct exti_links *links;
    int told;
};

static struct peer peers[PEERS];

static int handle_survives(void *user, exti_host_word *word)
{
    struct handle *h = (struct handle *)*word;

    (void)user;
    return h->marked;
}

static void handle_keep(void *user, exti_host_word word)
{
    struct handle *h = (struct handle *)word;

    (void)user;
    h->marked = true;
    exti_link_marked(h->home->links, h->native);
}

static int never_strengthened(void *user, exti_host_word word)
{
    (void)user;
    (void)word;
    fail();
    return 0;
}

static void never_weakened(void *user, exti_host_word word)
{
    never_strengthened(user, word);
}

static void told(void *user)
{
    struct peer *p = user;

    p->told++;
}

static void open_peers(void)
{
    struct exti_links_opts o = {
        .size = sizeof o,
        .natives = {.count = native_count, .add = native_add, .traverse = native_traverse},
        .marking = {handle_survives, handle_keep},
        .toggling = {.strengthen = never_strengthened, .weaken = never_weakened},
        .some_dead = told,
    };

    for (int i = 0; i < PEERS; i++) {
        peers[i] = (struct peer){0};
        o.user = &peers[i];
        assert_int_equal(exti_links_open(&peers[i].links, &o, NULL), 0);
    }
}

static void close_peers(void)
{
    for (int i = 0; i < PEERS; i++)
        exti_links_close(peers[i].links);
}

/* Gives a native of `home` to others. */
static void give(struct peer *home, struct native *n, struct handle *h)
{
    *h = (struct handle){home, n, false};
    n->count++;
    assert_int_equal(exti_link_native(home->links, (exti_host_word)h, n), 0);
}

/* `from`, which is in `at`, gets a proxy of what the handle is of. */
static void refer(struct peer *at, struct native *from, struct native *proxy, struct handle *h)
{
    *proxy = (struct native){.count = 1};
    from->fields[0] = proxy;
    assert_int_equal(exti_link_host(at->links, (exti_host_word)h, proxy, EXTI_LINK_LOOSE), 0);
}

static void collect(void)
{
    size_t kept = 1;

    while (kept) {
        kept = 0;
        for (int i = 0; i < PEERS; i++)
            kept += exti_links_trace(peers[i].links, EXTI_LINKS_ALL);
    }
    for (int i = 0; i < PEERS; i++)
        exti_links_sweep(peers[i].links, EXTI_LINKS_ALL);
}

static size_t count_links(void)
{
    struct exti_links_info info = {.size = sizeof info};
    size_t n = 0;

    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(exti_links_info(peers[i].links, &info), 0);
        assert_int_equal(info.young, 0);
        n += info.links;
    }
    return n;
}

static void loose_shell_ends_by_its_count(void **state)
{
    struct native n = {.count = 1}, shell = {.count = 1};
    struct handle h;

    (void)state;
    open_peers();
    give(&peers[0], &n, &h);
    assert_int_equal(exti_link_host(peers[1].links, (exti_host_word)&h, &shell, EXTI_LINK_LOOSE),
                     0);
    assert_ptr_equal(exti_link_from_host(peers[1].links, (exti_host_word)&h), &shell);
    assert_int_equal(exti_link_to_host(peers[1].links, &shell), (exti_host_word)&h);
    assert_int_equal(exti_link_hand_out(peers[1].links, &shell), 0);
    assert_int_equal(exti_links_scan(peers[1].links, 0), 0);
    exti_link_end(peers[1].links, &shell);
    exti_link_end(peers[1].links, &shell);
    assert_null(exti_link_from_host(peers[1].links, (exti_host_word)&h));
    assert_int_equal(shell.count, 1);
    exti_link_end(peers[0].links, &n); /* is no loose shell */
    assert_int_equal(exti_link_to_host(peers[0].links, &n), (exti_host_word)&h);
    close_peers();
    assert_int_equal(n.count, 1);
    assert_int_equal(shell.count, 1);
}

/* a of heap 0 -> b of heap 1 -> c of heap 2 -> a. */
struct ring {
    struct native natives[PEERS], proxies[PEERS];
    struct handle handles[PEERS];
};

static void make_ring(struct ring *r)
{
    *r = (struct ring){0};
    for (int i = 0; i < PEERS; i++)
        give(&peers[i], &r->natives[i], &r->handles[i]);
    for (int i = 0; i < PEERS; i++)
        refer(&peers[i], &r->natives[i], &r->proxies[i], &r->handles[(i + 1) % PEERS]);
}

static void dead_ring_ends(void **state)
{
    struct ring r;

    (void)state;
    open_peers();
    make_ring(&r);
    assert_int_equal(count_links(), 2 * PEERS);
    collect();
    assert_int_equal(count_links(), 0);
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(peers[i].told, 1);
        assert_ptr_equal(exti_links_next_dead(peers[i].links), &r.natives[i]);
        assert_null(exti_links_next_dead(peers[i].links));
        assert_int_equal(r.natives[i].count, 1);
        assert_int_equal(r.proxies[i].count, 1); /* its native's to let go of */
    }
    close_peers();
}

static void ring_lives_while_one_is_held(void **state)
{
    struct ring r;

    (void)state;
    for (int held = 0; held < PEERS; held++) {
        open_peers();
        make_ring(&r);
        r.natives[held].count++;
        collect();
        assert_int_equal(count_links(), 2 * PEERS);
        for (int i = 0; i < PEERS; i++) {
            assert_int_equal(r.natives[i].count, i == held ? 2 : 1);
            assert_true(r.handles[i].marked);
            r.handles[i].marked = false;
        }
        r.natives[held].count--;
        collect();
        assert_int_equal(count_links(), 0);
        close_peers();
    }
}

/* As a message that is on its way does. */
static void ring_lives_while_the_host_marks_one(void **state)
{
    struct ring r;

    (void)state;
    open_peers();
    make_ring(&r);
    r.handles[1].marked = true;
    collect();
    assert_int_equal(count_links(), 2 * PEERS);
    close_peers();
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(r.natives[i].count, 0);
}

static void ring_lives_while_a_proxy_is_held(void **state)
{
    struct ring r;

    (void)state;
    open_peers();
    make_ring(&r);
    r.proxies[2].count++;
    collect();
    assert_int_equal(count_links(), 2 * PEERS);
    close_peers();
}

static void what_has_died_is_settled(void **state)
{
    struct native n = {.count = 0};
    struct handle h;

    (void)state;
    open_peers();
    give(&peers[0], &n, &h);
    exti_link_died(peers[0].links, exti_link_number(peers[0].links, &n));
    assert_int_equal(exti_links_settle(peers[0].links), 1);
    assert_ptr_equal(exti_links_next_dead(peers[0].links), &n);
    collect();
    assert_int_equal(count_links(), 0);
    close_peers();
}

static void collections_of_the_young_change_nothing(void **state)
{
    struct ring r;

    (void)state;
    open_peers();
    make_ring(&r);
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(exti_links_trace(peers[i].links, EXTI_LINKS_YOUNG), 0);
        exti_links_sweep(peers[i].links, EXTI_LINKS_YOUNG);
    }
    assert_int_equal(count_links(), 2 * PEERS);
    close_peers();
}

static void hosts_that_only_mark_have_no_loose_shells(void **state)
{
    struct native shell = {.count = 1};
    struct heap h = {0};
    struct exti_links_opts o = heap_opts(&h);
    struct object *object = heap_new(&h);

    (void)state;
    assert_int_equal(exti_links_open(&h.links, &o, NULL), 0);
    assert_int_equal(exti_link_host(h.links, (exti_host_word)object, &shell, EXTI_LINK_LOOSE),
                     EXTI_E_ARG);
    assert_int_equal(
        exti_link_host(h.links, (exti_host_word)object, &shell, EXTI_LINK_LOOSE | EXTI_LINK_LIGHT),
        EXTI_E_ARG);
    exti_links_close(h.links);
    free(object);
    free(h.objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loose_shell_ends_by_its_count),
        cmocka_unit_test(dead_ring_ends),
        cmocka_unit_test(ring_lives_while_one_is_held),
        cmocka_unit_test(ring_lives_while_the_host_marks_one),
        cmocka_unit_test(ring_lives_while_a_proxy_is_held),
        cmocka_unit_test(what_has_died_is_settled),
        cmocka_unit_test(collections_of_the_young_change_nothing),
        cmocka_unit_test(hosts_that_only_mark_have_no_loose_shells),
    };

    return cmocka_run_group_tests_name("link/peers", tests, NULL, NULL);
}

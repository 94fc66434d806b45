/* Links between two heaps: what finding, making and ending one costs, against a load that depends on
 * the one before, from a table of as many bytes. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include <extisolate/link.h>

#define SECTION "links between two heaps"
#define APART 64 /* bytes between objects */

struct heaps {
    struct exti_links *links;
    size_t count;
    char *objects, *natives; /* none is ever read */
    size_t *order, *asked;   /* in which they are linked, and looked up: random ones */
    bool alive;
};

static int64_t count(void *user, const void *native)
{
    (void)user;
    (void)native;
    return 1;
}

static void add(void *user, void *native, int64_t n)
{
    (void)user;
    (void)native;
    (void)n;
}

static int survives(void *user, exti_host_word *object)
{
    (void)object;
    return ((const struct heaps *)user)->alive;
}

static void keep(void *user, exti_host_word object)
{
    (void)user;
    (void)object;
}

static size_t random_below(size_t n)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (size_t)(x % n);
}

static size_t *random_order(size_t n)
{
    size_t *order = malloc(n * sizeof *order);

    if (!order)
        die("no memory");
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t k = random_below(i), last = order[i - 1];

        order[i - 1] = order[k];
        order[k] = last;
    }
    return order;
}

static exti_host_word object_at(const struct heaps *h, size_t i)
{
    return (exti_host_word)(h->objects + i * APART);
}

static void link_all(struct heaps *h)
{
    for (size_t i = 0; i < h->count; i++)
        must(exti_link_host(h->links, object_at(h, h->order[i]), h->natives + i * APART, 0), NULL);
}

static void end_all(struct heaps *h)
{
    h->alive = false;
    exti_links_sweep(h->links, EXTI_LINKS_ALL);
    h->alive = true;
    while (exti_links_next_dead(h->links))
        ;
}

/* ---- nanoseconds for each --------------------------------------------------------------------- */

/* A walk through a table of so many bytes, each of whose words says which is the next. */
static double time_load(size_t bytes, size_t steps)
{
    const size_t n = bytes / sizeof(size_t);
    size_t *order = random_order(n), *table = malloc(n * sizeof *table);
    volatile size_t end;
    size_t at = 0;
    double begin;

    if (!table)
        die("no memory");
    for (size_t i = 0; i < n; i++)
        table[order[i]] = order[(i + 1) % n];
    begin = now();
    for (size_t i = 0; i < steps; i++)
        at = table[at];
    begin = now() - begin;
    end = at;
    (void)end;
    free(order);
    free(table);
    return begin / (double)steps * 1e9;
}

static double time_to_host(const struct heaps *h, size_t steps)
{
    const double begin = now();
    size_t found = 0;

    for (size_t i = 0, k = 0; i < steps; i++, k = k + 1 == h->count ? 0 : k + 1)
        found += exti_link_to_host(h->links, h->natives + h->asked[k] * APART) != 0;
    if (found != steps)
        die("a link is not found");
    return (now() - begin) / (double)steps * 1e9;
}

static double time_from_host(const struct heaps *h, size_t steps)
{
    const double begin = now();
    size_t found = 0;

    for (size_t i = 0, k = 0; i < steps; i++, k = k + 1 == h->count ? 0 : k + 1)
        found += exti_link_from_host(h->links, object_at(h, h->asked[k])) != NULL;
    if (found != steps)
        die("a link is not found");
    return (now() - begin) / (double)steps * 1e9;
}

static void time_links(struct heaps *h, size_t rounds, double *make, double *end)
{
    for (size_t i = 0; i < rounds; i++) {
        const double begin = now();
        double linked;

        link_all(h);
        linked = now();
        keep_least(make, (linked - begin) / (double)h->count * 1e9);
        end_all(h);
        keep_least(end, (now() - linked) / (double)h->count * 1e9);
    }
}

/* A collection of the young, of which there are 1,000. */
static double time_minor(struct heaps *h)
{
    double least = 0;

    for (int round = 0; round < 50; round++) {
        double begin;

        for (size_t i = 0; i < 1000; i++)
            must(exti_link_host(h->links, object_at(h, h->count + i),
                                h->natives + (h->count + i) * APART, 0),
                 NULL);
        begin = now();
        exti_links_trace(h->links, EXTI_LINKS_YOUNG);
        h->alive = false;
        exti_links_sweep(h->links, EXTI_LINKS_YOUNG);
        h->alive = true;
        keep_least(&least, now() - begin);
        while (exti_links_next_dead(h->links))
            ;
    }
    return least * 1e6;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static void claim(const char *what, size_t n, double value, const char *unit, double limit)
{
    char row[128];

    snprintf(row, sizeof row, "%s, %zu links", what, n);
    add_claim(SECTION, row, value, unit, true, limit);
}

/* Returns how long a collection of the young takes beside so many old ones. */
static double measure(const struct bench *b, size_t n)
{
    struct heaps h = {.count = n, .alive = true};
    const struct exti_links_opts o = {.size = sizeof o,
                                      .natives = {.count = count, .add = add},
                                      .marking = {.survives = survives, .keep = keep},
                                      .user = &h};
    struct exti_links_info info = {.size = sizeof info};
    /* Many short ones, as each is of use that nothing has disturbed. */
    const size_t rounds = b->quick ? 2 : 5 + 200000 / n, steps = n + 100000;
    double load = 0, to = 0, from = 0, make = 0, end = 0, minor;

    h.objects = malloc((n + 1000) * APART);
    h.natives = malloc((n + 1000) * APART);
    h.order = random_order(n);
    h.asked = random_order(n);
    if (!h.objects || !h.natives)
        die("no memory");
    must(exti_links_open(&h.links, &o, NULL), NULL);
    for (size_t round = 0; round < rounds; round++) {
        end_all(&h);
        time_links(&h, 5, &make, &end);
        link_all(&h);
        exti_links_sweep(h.links, EXTI_LINKS_ALL);
        exti_links_info(h.links, &info);
        keep_least(&load, time_load(info.memory, steps));
        keep_least(&to, time_to_host(&h, steps));
        keep_least(&from, time_from_host(&h, steps));
    }
    minor = time_minor(&h);
    claim("memory beyond the two pointers of each", n, (double)info.memory / (double)n - 16,
          "bytes", 24);
    claim("to the host's object, against a load", n, to / load, "x", 2);
    claim("from the host's object, against a load", n, from / load, "x", 2);
    claim("making a link, against a load", n, make / load, "x", 5);
    claim("ending a link, against a load", n, end / load, "x", 5);
    exti_links_close(h.links);
    free(h.objects);
    free(h.natives);
    free(h.order);
    free(h.asked);
    return minor;
}

void bench_links(const struct bench *b)
{
    const double few = measure(b, 1000), many = measure(b, 1000000);

    add_row(SECTION, "a collection of 1,000 young links, beside 1,000 old ones", few, "us");
    add_claim(SECTION, "the same beside 1,000,000, against that", many / few, "x", true, 2);
}

/* The memory of one CPython, whose allocator functions are called as CPython calls them. */
#include "tests/support/exti_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/heap.h"

/* ---- a CPython's allocators, by domain, as Py_PreInitialize sets them ---- */

static struct pyrt_allocator domains[3];
static struct pyrt_arenas arenas;
static int debug_hooks;

static void *stock_malloc(void *ctx, size_t n)
{
    (void)ctx;
    return malloc(n);
}

static void *pymalloc(void *ctx, size_t n)
{
    return stock_malloc(ctx, n);
}

static void get_allocator(int domain, struct pyrt_allocator *out)
{
    *out = domains[domain];
}

static void set_allocator(int domain, const struct pyrt_allocator *in)
{
    domains[domain] = *in;
}

static void set_up_hooks(void)
{
    debug_hooks++;
}

static void set_arenas(const struct pyrt_arenas *in)
{
    arenas = *in;
}

static const struct pyrt_api py = {
    .PyMem_GetAllocator = get_allocator,
    .PyMem_SetAllocator = set_allocator,
    .PyMem_SetupDebugHooks = set_up_hooks,
    .PyObject_SetArenaAllocator = set_arenas,
};

/* `small` is the function of the two domains of small blocks. */
static struct pyrt_heap *install(struct test *t, void *(*small)(void *, size_t), void *ctx)
{
    struct pyrt_heap *h;

    assert_ok(pyrt_heap_new(&h, &t->err), &t->err);
    domains[PYRT_DOMAIN_RAW] = (struct pyrt_allocator){.ctx = ctx, .malloc = stock_malloc};
    domains[PYRT_DOMAIN_MEM] = domains[PYRT_DOMAIN_OBJ] = (struct pyrt_allocator){.malloc = small};
    debug_hooks = 0;
    pyrt_heap_install(h, &py);
    return h;
}

static struct pyrt_heap *stock(struct test *t)
{
    return install(t, pymalloc, NULL);
}

static const struct pyrt_allocator *raw = &domains[PYRT_DOMAIN_RAW];

/* ---- which allocators are replaced ---- */

static void raw_memory_and_arenas_come_from_the_heap(void **state)
{
    struct pyrt_heap *h = stock(*state);

    assert_ptr_equal(raw->ctx, h);
    assert_ptr_equal(arenas.ctx, h);
    assert_true(domains[PYRT_DOMAIN_MEM].malloc == pymalloc);
    assert_true(domains[PYRT_DOMAIN_OBJ].malloc == pymalloc);
    assert_int_equal(debug_hooks, 0);
    pyrt_heap_free(h);
}

static void all_domains_without_pymalloc(void **state)
{
    struct pyrt_heap *h = install(*state, stock_malloc, NULL);

    for (int i = 0; i < 3; i++)
        assert_ptr_equal(domains[i].ctx, h);
    pyrt_heap_free(h);
}

static void debug_hooks_are_put_around_it_again(void **state)
{
    struct pyrt_heap *h = install(*state, pymalloc, &debug_hooks);

    assert_int_equal(debug_hooks, 1);
    pyrt_heap_free(h);
}

/* ---- blocks ---- */

static bool is_filled(const unsigned char *p, size_t n, unsigned char with)
{
    while (n && p[n - 1] == with)
        n--;
    return n == 0;
}

#define MANY 20000

/* More blocks than the table begins with, freed and moved in another order than they came in. */
static void many_blocks_keep_their_contents(void **state)
{
    struct test *t = *state;
    struct pyrt_heap *h = stock(t);
    unsigned char **v = test_alloc(t, MANY * sizeof *v);

    for (size_t i = 0; i < MANY; i++) {
        v[i] = raw->malloc(raw->ctx, 16 + i % 48);
        assert_non_null(v[i]);
        memset(v[i], (int)(i & 0xFF), 16);
    }
    for (size_t i = 0; i < MANY; i += 3) {
        size_t k = i * 7919 % MANY;

        raw->free(raw->ctx, v[k]);
        v[k] = NULL;
    }
    for (size_t i = 0; i < MANY; i += 2)
        if (v[i]) {
            v[i] = raw->realloc(raw->ctx, v[i], 16 + (i * 5) % 4000);
            assert_non_null(v[i]);
        }
    for (size_t i = 0; i < MANY; i++)
        if (v[i])
            assert_true(is_filled(v[i], 16, (unsigned char)(i & 0xFF)));
    for (size_t i = 0; i < MANY; i += 5)
        raw->free(raw->ctx, v[i]);
    pyrt_heap_free(h); /* with the rest; the leak checkers see that */
}

static void requests_for_nothing_get_a_block(void **state)
{
    struct pyrt_heap *h = stock(*state);
    void *v[] = {raw->malloc(raw->ctx, 0), raw->calloc(raw->ctx, 0, 8), raw->calloc(raw->ctx, 8, 0),
                 raw->realloc(raw->ctx, NULL, 0)};

    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        assert_non_null(v[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(v[i], v[k]);
    }
    v[0] = raw->realloc(raw->ctx, v[0], 0);
    assert_non_null(v[0]);
    raw->free(raw->ctx, NULL);
    pyrt_heap_free(h);
}

static void calloc_clears(void **state)
{
    struct pyrt_heap *h = stock(*state);
    unsigned char *p;

    for (int i = 0; i < 64; i++) {
        p = raw->malloc(raw->ctx, 512);
        memset(p, 0xEE, 512);
        raw->free(raw->ctx, p);
        p = raw->calloc(raw->ctx, 64, 8);
        assert_true(is_filled(p, 512, 0));
    }
    pyrt_heap_free(h);
}

static void what_does_not_fit_is_refused(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)state;
    skip_because("the sanitizer ends a program that asks for so much");
#else
    struct pyrt_heap *h = stock(*state);
    volatile size_t most = SIZE_MAX / 2; /* the compiler knows that this is too much */
    unsigned char *p = raw->malloc(raw->ctx, 100);

    memset(p, 7, 100);
    assert_null(raw->malloc(raw->ctx, most));
    assert_null(raw->calloc(raw->ctx, most, 4));
    assert_null(raw->realloc(raw->ctx, p, most));
    assert_true(is_filled(p, 100, 7));
    assert_null(arenas.alloc(arenas.ctx, most));
    raw->free(raw->ctx, p);
    pyrt_heap_free(h);
#endif
}

/* CPython frees blocks that it has from before pyrt_heap_install. */
static void older_blocks_may_be_freed_and_grown(void **state)
{
    struct pyrt_heap *h = stock(*state);
    unsigned char *one = malloc(50), *two = malloc(50);

    memset(two, 9, 50);
    raw->free(raw->ctx, one);
    two = raw->realloc(raw->ctx, two, 100000);
    assert_true(is_filled(two, 50, 9));
    free(two); /* it is still none of the heap's */
    pyrt_heap_free(h);
}

static void what_is_taken_is_counted(void **state)
{
    struct pyrt_heap *h = stock(*state);
    void *older = malloc(5000), *v, *arena;

    assert_int_equal(pyrt_heap_bytes(h), 0);
    v = raw->malloc(raw->ctx, 1000);
    assert_in_range(pyrt_heap_bytes(h), 1000, 1999);
    v = raw->realloc(raw->ctx, v, 100000);
    assert_in_range(pyrt_heap_bytes(h), 100000, 150000);
    v = raw->realloc(raw->ctx, v, 2000);
    assert_in_range(pyrt_heap_bytes(h), 2000, 2999);
    raw->free(raw->ctx, older);
    arena = arenas.alloc(arenas.ctx, 1 << 20);
    assert_in_range(pyrt_heap_bytes(h), (1 << 20) + 2000, (1 << 20) + 2999);
    raw->free(raw->ctx, v);
    assert_int_equal(pyrt_heap_bytes(h), 1 << 20);
    arenas.free(arenas.ctx, arena, 1 << 20);
    assert_int_equal(pyrt_heap_bytes(h), 0);
    assert_int_equal(pyrt_heap_bytes(NULL), 0);
    pyrt_heap_free(h);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* A block that begins with the place of the one before it. */
struct link {
    struct link *before;
    unsigned char filled[56];
};

/* Half of the blocks that were taken before, so that malloc has small ones to give, but no large
 * one. */
static void leave_only_small_blocks(void **small, size_t count)
{
    for (size_t i = 0; i < count; i++)
        small[i] = malloc(sizeof(struct link));
    for (size_t i = 0; i < count; i += 2)
        free(small[i]);
}

/* Takes blocks until there is none; returns how many. */
static size_t take_all(struct link **last)
{
    struct link *p;
    size_t n = 0;

    for (*last = NULL; n < MANY && (p = raw->malloc(raw->ctx, sizeof *p)); n++) {
        memset(p->filled, (int)(n & 0xFF), sizeof p->filled);
        p->before = *last;
        *last = p;
    }
    return n;
}

static bool give_back(struct link *last, size_t n)
{
    for (struct link *p = last, *before; p; p = before) {
        before = p->before;
        if (!is_filled(p->filled, sizeof p->filled, (unsigned char)(--n & 0xFF)))
            return false;
        raw->free(raw->ctx, p);
    }
    return n == 0;
}

enum { WHOLE, LIMITLESS, WRONG };

/* The process may map nothing more: first the table cannot grow, then there is nothing at all. */
static int run_out_of_memory(struct test *t)
{
    static void *small[8000];
    struct rlimit limit = {0, RLIM_INFINITY};
    struct pyrt_heap *h = stock(t), *other = NULL;
    struct link *last;
    void *large;
    size_t n;

    leave_only_small_blocks(small, ARRAY_SIZE(small));
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return LIMITLESS;
    n = take_all(&last);
    if (n == MANY)
        return LIMITLESS;
    while ((large = malloc(sizeof(void *) << 12)))
        *(void **)large = NULL; /* the process ends soon */
    if (n < 1000 || arenas.alloc(arenas.ctx, 4096) ||
        pyrt_heap_new(&other, &t->err) != EXTI_E_NOMEM || other)
        return WRONG;
    if (!give_back(last, n))
        return WRONG;
    limit.rlim_cur = RLIM_INFINITY;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || take_all(&last) != MANY || !give_back(last, MANY))
        return WRONG;
    pyrt_heap_free(h);
    return WHOLE;
}
#endif

static void no_more_memory_leaves_the_heap_whole(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)state;
    skip_because("the sanitizer ends a program that runs out of memory");
#else
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(run_out_of_memory(*state));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == LIMITLESS)
        skip_because("the limit of the address space has no effect here");
    assert_int_equal(WEXITSTATUS(status), WHOLE);
#endif
}

/* ---- arenas ---- */

static bool is_mapped(void *at)
{
    return msync(at, 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

static void arenas_are_unmapped(void **state)
{
    const size_t size = (size_t)1 << 20;
    struct pyrt_heap *h = stock(*state);
    char *freed = arenas.alloc(arenas.ctx, size), *left = arenas.alloc(arenas.ctx, size);

    assert_non_null(freed);
    assert_non_null(left);
    memset(freed, 1, size);
    memset(left, 1, size);
    arenas.free(arenas.ctx, freed, size);
    assert_true(is_mapped(left));
    pyrt_heap_free(h);
    assert_false(is_mapped(left));
}

#define ARENA ((size_t)1 << 20)

static void heaps_end_in_any_order(void **state)
{
    struct pyrt_heap *h[3];
    void *arena[3];

    for (int i = 0; i < 3; i++) {
        h[i] = stock(*state);
        arena[i] = arenas.alloc(h[i], ARENA);
    }
    pyrt_heap_free(h[1]);
    assert_true(is_mapped(arena[0]) && is_mapped(arena[2]));
    pyrt_heap_free(h[0]);
    assert_true(is_mapped(arena[2]));
    pyrt_heap_free(h[2]);
    for (int i = 0; i < 3; i++)
        assert_false(is_mapped(arena[i]));
    pyrt_heap_free(NULL);
}

static int count_mapped(void *const *at, int n)
{
    int mapped = 0;

    for (int i = 0; i < n; i++)
        mapped += is_mapped(at[i]);
    return mapped;
}

enum { FREED = 40, KEPT = 32, LEFT = 3 };

/* As much as is used at most, so that nothing is kept when nothing is used, and no more than KEPT
 * megabytes. */
static void arenas_are_kept_for_the_next_heap(void **state)
{
    struct pyrt_heap *h[2] = {stock(*state), stock(*state)};
    void *freed[FREED], *used[FREED + 1], *again;

    for (int i = 0; i < FREED; i++) {
        assert_non_null(freed[i] = arenas.alloc(h[0], ARENA));
        assert_non_null(used[i] = arenas.alloc(h[1], ARENA));
    }
    pyrt_heap_free(h[0]);
    assert_int_equal(count_mapped(freed, FREED), KEPT);
    again = used[FREED] = arenas.alloc(h[1], ARENA);
    assert_int_equal(count_mapped(freed, FREED), KEPT);
    memset(again, 1, ARENA);
    for (int i = LEFT; i <= FREED; i++)
        arenas.free(h[1], used[i], ARENA);
    /* The oldest ones have gone first. */
    assert_int_equal(count_mapped(freed, FREED), again == used[FREED]);
    assert_int_equal(count_mapped(used, FREED + 1), LEFT + LEFT);
    pyrt_heap_free(h[1]);
    assert_int_equal(count_mapped(freed, FREED) + count_mapped(used, FREED + 1), 0);
}

/* CPython has the stacks of its frames by the same functions. */
static void other_sizes_are_not_kept(void **state)
{
    struct pyrt_heap *h = stock(*state);
    void *arena[2] = {arenas.alloc(h, ARENA), arenas.alloc(h, ARENA)}, *stack[64];

    arenas.free(h, arena[1], ARENA);
    for (int i = 0; i < 64; i++)
        assert_non_null(stack[i] = arenas.alloc(h, 16 << 10));
    for (int i = 0; i < 64; i++)
        arenas.free(h, stack[i], 16 << 10);
    assert_int_equal(count_mapped(stack, 64), 0);
    assert_true(is_mapped(arena[1]));
    assert_ptr_equal(arenas.alloc(h, ARENA), arena[1]);
    pyrt_heap_free(h);
}

/* ---- threads and forks ---- */

static atomic_int end;

static void *allocate_all_the_time(void *arg)
{
    const struct pyrt_allocator *a = arg;

    while (!atomic_load(&end)) {
        a->free(a->ctx, a->malloc(a->ctx, 64));
        arenas.free(a->ctx, arenas.alloc(a->ctx, 1 << 20), 1 << 20);
    }
    return NULL;
}

/* A lock that the thread holds at the fork would stay locked in the child, which SIGALRM ends
 * then. */
static void a_forked_child_can_allocate(void **state)
{
    struct pyrt_heap *h = stock(*state);
    struct pyrt_allocator a = *raw;
    pthread_t thread;
    int status = 0;

    atomic_store(&end, 0);
    assert_int_equal(pthread_create(&thread, NULL, allocate_all_the_time, &a), 0);
    for (int i = 0; i < 50 && status == 0; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(60);
            a.free(a.ctx, a.malloc(a.ctx, 64));
            arenas.free(a.ctx, arenas.alloc(a.ctx, 1 << 20), 1 << 20);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    atomic_store(&end, 1);
    pthread_join(thread, NULL);
    pyrt_heap_free(h);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(raw_memory_and_arenas_come_from_the_heap),
        exti_test(all_domains_without_pymalloc),
        exti_test(debug_hooks_are_put_around_it_again),
        exti_test(many_blocks_keep_their_contents),
        exti_test(requests_for_nothing_get_a_block),
        exti_test(calloc_clears),
        exti_test(what_does_not_fit_is_refused),
        exti_test(older_blocks_may_be_freed_and_grown),
        exti_test(what_is_taken_is_counted),
        exti_test(no_more_memory_leaves_the_heap_whole),
        exti_test(arenas_are_unmapped),
        exti_test(heaps_end_in_any_order),
        exti_test(arenas_are_kept_for_the_next_heap),
        exti_test(other_sizes_are_not_kept),
        exti_test(a_forked_child_can_allocate),
    };

    return cmocka_run_group_tests_name("runtime/heap", tests, NULL, NULL);
}

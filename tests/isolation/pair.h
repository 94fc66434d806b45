/* Checks that two contexts of the toy API share nothing, whatever the host exports. */
#ifndef TESTS_ISOLATION_PAIR_H
#define TESTS_ISOLATION_PAIR_H

#include "tests/isolation/iso.h"

struct toy_one {
    struct exti_ctx *ctx;
    struct exti_module *api, *a, *b;
};

/* All modules of a context see the same API library, which is fresh and not the host's. */
static inline void toy_check_inside(const struct toy_one *one)
{
    int *count = iso_sym(one->api, "toy_count");
    void *type = iso_sym(one->api, "toy_type_type");
    void *next = iso_sym(one->api, "toy_next");
    int (**table)(void) = iso_sym(one->api, "toy_table");

    want(call_ptr(one->api, "toy_count_seen") == count);
    want(call_ptr(one->a, "ext_count") == count);
    want(call_ptr(one->b, "ext_count") == count);
    want(call_ptr(one->a, "ext_meta") == type);
    want(call_ptr(one->b, "ext_meta") == type);
    want(*(void **)((char *)type + sizeof(void *)) == type);
    want((void *)table[0] == next);
    want(call_ptr(one->a, "ext_function_now") == next);
    want(call_ptr(one->a, "ext_function_at_init") == next);
    want(*(void **)iso_sym(one->a, "ext_function") == next);
    want(*(void **)iso_sym(one->a, "ext_data") == (void *)count);
    want_int(*(int *)iso_sym(one->api, "toy_constructed"), 1);
    want_int(call_int(one->a, "ext_count_at_init"), 1);
    want_int(call_int(one->b, "ext_count_at_init"), 2);
    want_int(*count, 2);
    want_int(call_int(one->a, "ext_next"), 3);
    want_int(call_int(one->b, "ext_next_by_pointer"), 4);
    want_int(call_int(one->api, "toy_next_by_call"), 5);
    want_int(call_int(one->a, "ext_fast"), 42);
    want_int(call_int(one->a, "ext_weak_absent"), 0);
    want_int(call_int(one->a, "ext_weak_present"), 1);
    want_text(call_ptr(one->a, "ext_where"), exti_module_original(one->api)); /* by dladdr */
}

/* Both extensions export the same names; each one uses its own definitions. */
static inline void toy_check_own(const struct toy_one *one)
{
    void *(*find)(const char *) = (void *(*)(const char *))iso_sym(one->a, "ext_find");

    want(call_ptr(one->a, "ext_own_seen") == iso_sym(one->a, "ext_own"));
    want(call_ptr(one->b, "ext_own_seen") == iso_sym(one->b, "ext_own"));
    want(iso_sym(one->a, "ext_own") != iso_sym(one->b, "ext_own"));
    want_int(call_int(one->a, "ext_own_by_call"), 6);
    want_int(call_int(one->b, "ext_own_by_call"), 6);
    want(find("b") == iso_sym(one->b, "ext_type"));
    want(find("a") == iso_sym(one->a, "ext_type"));
}

static inline void toy_check_apart(const struct toy_one *x, const struct toy_one *y)
{
    static const char *const places[] = {"ext_count", "ext_meta",         "ext_static",
                                         "ext_tls",   "ext_function_now", "ext_own_seen"};
    int before = *(int *)iso_sym(y->api, "toy_count");

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        want(call_ptr(x->a, places[i]) != call_ptr(y->a, places[i]));
    want(call_ptr(x->api, "toy_tls_seen") != call_ptr(y->api, "toy_tls_seen"));
    call_int(x->a, "ext_next");
    want_int(*(int *)iso_sym(y->api, "toy_count"), before);
    *(int *)iso_sym(x->api, "toy_count") = 500;
    want_int(call_int(y->a, "ext_next"), before + 1);
    want_int(call_int(x->b, "ext_next"), 501);
}

static inline struct toy_one toy_open_one(const char *dir, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, NULL);
    struct toy_one one;

    opts.flags = flags;
    one.ctx = iso_open_opts(&opts);
    one.a = iso_load(one.ctx, toy("ext_a.so"));
    one.b = iso_load(one.ctx, toy("ext_b.so"));
    one.api = iso_api(one.ctx);
    return one;
}

/* Opens two contexts, checks them and closes them.  `renamed`: 1 when the API symbols must have got
 * private names, 0 when they must not. */
static inline void toy_check_pair(uint32_t flags, int renamed)
{
    struct toy_one x = toy_open_one("x", flags), y = toy_open_one("y", flags);
    struct exti_error err = {0};
    struct exti_dir *d = NULL;

    toy_check_inside(&x);
    toy_check_inside(&y);
    toy_check_own(&x);
    toy_check_own(&y);
    toy_check_apart(&x, &y);
    toy_check_apart(&y, &x);
    iso_prove_clean(x.ctx, 3);
    iso_prove_clean(y.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
    want_exti(exti_dir_read(in_tmp("x"), &d, &err), 0, &err);
    want_int(exti_dir_renamed(d), renamed);
    want_int((long)exti_dir_count(d), 3);
    exti_dir_free(d);
    iso_dir_clean(in_tmp("x"));
    iso_dir_clean(in_tmp("y"));
}

#endif

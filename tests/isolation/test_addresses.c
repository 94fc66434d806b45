/* Where a copy's own addresses seem to lie, when it asks: in its original. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#include "tests/isolation/pair.h"

struct asker {
    struct exti_ctx *ctx;
    struct exti_module *m, *a, *api;
    int (*addr)(const void *, Dl_info *);
};

static struct asker open_asker(const char *dir, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp(dir), NULL);
    struct asker k;

    opts.flags = flags;
    k.ctx = iso_open_opts(&opts);
    k.m = iso_load(k.ctx, toy("ext_dl.so"));
    k.a = iso_load(k.ctx, toy("ext_a.so"));
    k.api = iso_api(k.ctx);
    k.addr = (int (*)(const void *, Dl_info *))iso_sym(k.m, "dl_addr");
    return k;
}

static void tells(const struct asker *k, void *address, const char *file, const char *symbol)
{
    Dl_info info = {0};
    char *real = realpath(file, NULL);

    want(real && k->addr(address, &info));
    want_text(info.dli_fname, real);
    want_text(real, info.dli_fname);
    want(!symbol || (info.dli_sname && strcmp(info.dli_sname, symbol) == 0));
    free(real);
}

static void tells_originals(const struct asker *k)
{
    tells(k, iso_sym(k->m, "dl_addr"), toy("ext_dl.so"), "dl_addr");
    tells(k, iso_sym(k->a, "ext_own"), toy("ext_a.so"), "ext_own");
    tells(k, iso_sym(k->api, "toy_next"), toy("libtoy.so.1"), "toy_next");
}

ISO_CASE_EACH(addresses_in_copies_are_in_their_originals)
{
    struct asker plain = open_asker("x", 0), private = open_asker("y", EXTI_CTX_RENAME);

    tells_originals(&plain);
    tells_originals(&private);
    iso_close_ctx(plain.ctx);
    iso_close_ctx(private.ctx);
}

/* All others are where the system says: the C library, another context's copies, no file at all. */
ISO_CASE_EACH(other_addresses_are_where_they_are)
{
    struct asker x = open_asker("x", 0), y = open_asker("y", 0);
    Dl_info here = {0}, there = {0};

    want(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &here));
    want(x.addr(dlsym(RTLD_DEFAULT, "malloc"), &there));
    want(strcmp(here.dli_fname, there.dli_fname) == 0 && here.dli_saddr == there.dli_saddr);
    tells(&x, iso_sym(y.a, "ext_own"), exti_module_copy(y.a), "ext_own");
    want(!x.addr(&here, &there));
    /* And for whoever is no copy. */
    want(dladdr(iso_sym(x.a, "ext_own"), &here));
    want_text(here.dli_fname, exti_ctx_dir(x.ctx));
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE_EACH(the_extended_calls_tell_the_same)
{
    struct asker k = open_asker("x", 0);
    int (*addr1)(const void *, Dl_info *, void **, int) =
        (int (*)(const void *, Dl_info *, void **, int))iso_sym(k.m, "dl_addr1");
    int (*dl_info)(void *, int, void *) = (int (*)(void *, int, void *))iso_sym(k.m, "dl_info");
    void *(*open)(const char *, int) = (void *(*)(const char *, int))iso_sym(k.m, "dl_open");
    char origin[PATH_MAX] = "", *real = realpath(toy("."), NULL);
    void *handle = open(toy("ext_a.so"), RTLD_NOW);
    const ElfW(Sym) *symbol = NULL;
    struct link_map *map = NULL;
    Dl_info info = {0};

    want(real && handle);
    want(addr1(iso_sym(k.a, "ext_own"), &info, (void **)&symbol, RTLD_DL_SYMENT));
    want_text(info.dli_fname, "/ext_a.so");
    want(symbol && symbol->st_size == sizeof(int));
    want(addr1(iso_sym(k.a, "ext_own"), &info, (void **)&map, RTLD_DL_LINKMAP));
    want_text(map->l_name, exti_module_copy(k.a));
    want_int(dl_info(handle, RTLD_DI_ORIGIN, origin), 0);
    want_text(origin, real);
    want_text(real, origin);
    want_int(dlinfo(handle, RTLD_DI_ORIGIN, origin), 0);
    want(strcmp(origin, exti_ctx_dir(k.ctx)) == 0);
    handle = open("libm.so.6", RTLD_NOW);
    want(handle && dl_info(handle, RTLD_DI_ORIGIN, origin) == 0);
    want(!strstr(origin, iso_tmp) && strcmp(origin, real) != 0);
    free(real);
    iso_close_ctx(k.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_in_copies_are_in_their_originals),
        cmocka_unit_test(other_addresses_are_where_they_are),
        cmocka_unit_test(the_extended_calls_tell_the_same),
    };

    return cmocka_run_group_tests_name("isolation/addresses", tests, NULL, NULL);
}

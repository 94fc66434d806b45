/* A copy that calls dladdr or dlinfo learns that its addresses lie in its original. */
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

static void want_address_in(const struct asker *k, void *address, const char *file,
                            const char *symbol)
{
    Dl_info info = {0};
    char *real = realpath(file, NULL);

    want(real && k->addr(address, &info));
    want_text(info.dli_fname, real);
    want_text(real, info.dli_fname);
    want(!symbol || (info.dli_sname && strcmp(info.dli_sname, symbol) == 0));
    free(real);
}

static void want_addresses_in_originals(const struct asker *k)
{
    want_address_in(k, iso_sym(k->m, "dl_addr"), toy("ext_dl.so"), "dl_addr");
    want_address_in(k, iso_sym(k->a, "ext_own"), toy("ext_a.so"), "ext_own");
    want_address_in(k, iso_sym(k->api, "toy_next"), toy("libtoy.so.1"), "toy_next");
}

ISO_CASE_EACH(dladdr_reports_the_original_of_a_copy)
{
    struct asker plain = open_asker("x", 0), private = open_asker("y", EXTI_CTX_RENAME);

    want_addresses_in_originals(&plain);
    want_addresses_in_originals(&private);
    iso_close_ctx(plain.ctx);
    iso_close_ctx(private.ctx);
}

/* For the C library, copies of another context and addresses in no file the answer is the
 * system's. */
ISO_CASE_EACH(dladdr_reports_other_addresses_as_the_system_does)
{
    struct asker x = open_asker("x", 0), y = open_asker("y", 0);
    Dl_info here = {0}, there = {0};

    want(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &here));
    want(x.addr(dlsym(RTLD_DEFAULT, "malloc"), &there));
    want(strcmp(here.dli_fname, there.dli_fname) == 0 && here.dli_saddr == there.dli_saddr);
    want_address_in(&x, iso_sym(y.a, "ext_own"), exti_module_copy(y.a), "ext_own");
    want(!x.addr(&here, &there));
    /* So is the answer to a caller that is not a copy. */
    want(dladdr(iso_sym(x.a, "ext_own"), &here));
    want_text(here.dli_fname, exti_ctx_dir(x.ctx));
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE_EACH(dladdr1_and_dlinfo_report_the_original_of_a_copy)
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
        cmocka_unit_test(dladdr_reports_the_original_of_a_copy),
        cmocka_unit_test(dladdr_reports_other_addresses_as_the_system_does),
        cmocka_unit_test(dladdr1_and_dlinfo_report_the_original_of_a_copy),
    };

    return cmocka_run_group_tests_name("isolation/addresses", tests, NULL, NULL);
}

/* The proof finds references that lead out of a context, and names them. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "tests/isolation/pair.h"

struct findings {
    int count;
    char text[4096];
};

static int add_finding(void *user, const struct exti_error *finding)
{
    struct findings *f = user;
    size_t n = strlen(f->text);

    want_int(finding->code, EXTI_E_INTERPOSED);
    f->count++;
    snprintf(f->text + n, sizeof f->text - n, "[%s: %s]", finding->file, finding->message);
    return 0;
}

#ifdef __aarch64__
enum { GLOB_DAT = R_AARCH64_GLOB_DAT, JUMP_SLOT = R_AARCH64_JUMP_SLOT };
#else
enum { GLOB_DAT = R_X86_64_GLOB_DAT, JUMP_SLOT = R_X86_64_JUMP_SLOT };
#endif

/* Replaces `from` by `to` in each slot that a GLOB_DAT or JUMP_SLOT relocation of a loaded file
 * fills, in read-only memory too.  Returns the number of slots. */
static int patch_slots(const struct link_map *map, void *from, void *to)
{
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    int found = 0;

    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA)
            tables[0] = (const ElfW(Rela) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_RELASZ)
            sizes[0] = d->d_un.d_val;
        else if (d->d_tag == DT_JMPREL)
            tables[1] = (const ElfW(Rela) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_PLTRELSZ)
            sizes[1] = d->d_un.d_val;
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizes[k] / sizeof(ElfW(Rela)); i++) {
            void **slot = (void **)(map->l_addr + tables[k][i].r_offset);
            unsigned long type = ELF64_R_TYPE(tables[k][i].r_info);
            uintptr_t page = (uintptr_t)slot & ~(uintptr_t)4095;

            if ((type != GLOB_DAT && type != JUMP_SLOT) || *slot != from)
                continue;
            want(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) == 0);
            *slot = to;
            found++;
        }
    }
    return found;
}

static struct link_map *map_of(const char *copy)
{
    void *handle = dlopen(copy, RTLD_NOW | RTLD_NOLOAD);
    struct link_map *map = NULL;

    want(handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    return map;
}

/* The address of a symbol in the original library, which the program opens locally. */
static void *address_in_original(const char *name)
{
    void *handle = dlopen(toy("libtoy.so.1"), RTLD_NOW | RTLD_LOCAL);
    void *p = handle ? dlsym(handle, name) : NULL;

    want(p);
    return p;
}

static void want_patched_slot_found(const char *symbol, uint32_t flags)
{
    struct toy_one x = toy_open_one("x", flags);
    struct findings f = {.count = 0};
    struct exti_proof proof;
    int n;

    iso_prove_clean(x.ctx, 3);
    n = patch_slots(map_of(exti_module_copy(x.a)), iso_sym(x.api, symbol),
                    address_in_original(symbol));
    want(n > 0);
    proof = iso_proof(x.ctx, add_finding, &f);
    fprintf(stderr, "%s\n", f.text);
    want_int((long)proof.leaks, f.count);
    want_int(f.count, n);
    want_text(f.text, symbol);
    want_text(f.text, toy("libtoy.so.1"));
    want_text(f.text, exti_module_copy(x.a));
    n = patch_slots(map_of(exti_module_copy(x.a)), address_in_original(symbol),
                    iso_sym(x.api, symbol));
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
}

ISO_CASE_EACH(a_data_slot_bound_outside_is_found)
{
    want_patched_slot_found("toy_count", 0);
}

ISO_CASE_EACH(a_function_slot_bound_outside_is_found)
{
    want_patched_slot_found("toy_next", 0);
}

/* The finding gives the symbol's name in the original. */
ISO_CASE_EACH(a_slot_of_a_private_name_bound_outside_is_found)
{
    want_patched_slot_found("toy_count", EXTI_CTX_RENAME);
}

/* A copy of another context lies outside too. */
ISO_CASE_EACH(a_slot_bound_to_another_context_is_found)
{
    struct toy_one x = toy_open_one("x", 0), y = toy_open_one("y", 0);
    struct findings f = {.count = 0};

    want(patch_slots(map_of(exti_module_copy(x.b)), iso_sym(x.api, "toy_count"),
                     iso_sym(y.api, "toy_count")) > 0);
    iso_proof(x.ctx, add_finding, &f);
    want(f.count > 0);
    want_text(f.text, "toy_count");
    want_text(f.text, exti_module_copy(y.api));
    iso_prove_clean(y.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

static int stop_report(void *user, const struct exti_error *finding)
{
    (void)finding;
    return ++*(int *)user == 1;
}

ISO_CASE(a_nonzero_return_of_the_report_stops_the_proof)
{
    struct toy_one x = toy_open_one("x", 0);
    int calls = 0;

    want(patch_slots(map_of(exti_module_copy(x.a)), iso_sym(x.api, "toy_count"),
                     address_in_original("toy_count")) > 0);
    want(patch_slots(map_of(exti_module_copy(x.a)), iso_sym(x.api, "toy_next"),
                     address_in_original("toy_next")) > 0);
    iso_proof(x.ctx, stop_report, &calls);
    want_int(calls, 1);
    want(iso_proof(x.ctx, NULL, NULL).leaks > 1);
    iso_close_ctx(x.ctx);
}

/* Gives each C++ variable that the file defines the binding STB_GNU_UNIQUE. */
static void make_unique(const char *path)
{
    static unsigned char file[1 << 20];
    FILE *f = fopen(path, "r+b");
    size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    const ElfW(Ehdr) *eh = (const void *)file;
    const ElfW(Shdr) *sh = (const void *)(file + eh->e_shoff);
    int made = 0;

    want(n > sizeof *eh && n < sizeof file);
    for (unsigned i = 0; i < eh->e_shnum; i++) {
        if (sh[i].sh_type != SHT_DYNSYM)
            continue;
        for (size_t at = sh[i].sh_offset; at < sh[i].sh_offset + sh[i].sh_size;
             at += sizeof(ElfW(Sym))) {
            ElfW(Sym) *sym = (void *)(file + at);
            const char *name = (const char *)file + sh[sh[i].sh_link].sh_offset + sym->st_name;

            if (ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_shndx &&
                !strncmp(name, "_Z", 2))
                sym->st_info = ELF64_ST_INFO(STB_GNU_UNIQUE, STT_OBJECT), made++;
        }
    }
    want(made >= 3);
    want(fseek(f, 0, SEEK_SET) == 0 && fwrite(file, 1, n, f) == n && fclose(f) == 0);
}

/* Makes them unique again, after the library has made the copy and checked it. */
static int make_unique_again(void *user, struct exti_ctx *ctx, const char *original,
                             const char *copy)
{
    (void)user, (void)ctx;
    if (strstr(original, "ext_cxx.so"))
        make_unique(copy);
    return 0;
}

ISO_CASE(a_unique_symbol_bound_outside_is_refused_or_found)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = make_unique_again};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_module *m = NULL;
    struct exti_ctx *ctx;
    struct findings f = {.count = 0};

    copy_file(toy("ext_cxx.so"), in_tmp("outsider.so"));
    want(dlopen(toy("libtoy.so.1"), RTLD_NOW | RTLD_GLOBAL));
    want(dlopen(in_tmp("outsider.so"), RTLD_NOW | RTLD_LOCAL));
    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    if (exti_load(ctx, toy("ext_cxx.so"), &m, &err)) {
        want_int(err.code, EXTI_E_INTERPOSED);
        snprintf(f.text, sizeof f.text, "%s", err.message);
    } else {
        iso_proof(ctx, add_finding, &f);
        want(f.count > 0);
    }
    fprintf(stderr, "%s\n", f.text);
    want_text(f.text, "outsider.so");
    want_text(f.text, "_Z");
    iso_close_ctx(ctx);
}

/* With the initial-exec model an extension reaches the API's thread-local variables by their offset
 * from the thread pointer. */
ISO_CASE(the_proof_follows_offsets_of_thread_local_variables)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;
    struct exti_module *m;
    struct exti_proof proof;
    int *(*seen)(void);

    want(system(
             iso_text("echo '__thread int api_tls = 5; int *api_seen(void) { return &api_tls; }' |"
                      " gcc -shared -fPIC -xc - -Wl,-soname,libtls.so.1 -o '%s'",
                      in_tmp("libtls.so.1"))) == 0);
    want(system(
             iso_text("echo 'extern __thread int api_tls; int *ext_seen(void) { return &api_tls; }'"
                      " | gcc -shared -fPIC -ftls-model=initial-exec -xc - -o '%s'",
                      in_tmp("ext_tls.so"))) == 0);
    opts.api_library = in_tmp("libtls.so.1");
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("ext_tls.so"));
    seen = (int *(*)(void))iso_sym(m, "ext_seen");
    want(seen() == call_ptr(iso_api(ctx), "api_seen"));
    want_int(*seen(), 5);
    proof = iso_proof(ctx, iso_print_finding, NULL);
    want_int((long)proof.leaks, 0);
    want_int((long)proof.references, 2); /* the API library's and the extension's */
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_slot_bound_outside_is_found),
        cmocka_unit_test(a_function_slot_bound_outside_is_found),
        cmocka_unit_test(a_slot_of_a_private_name_bound_outside_is_found),
        cmocka_unit_test(a_slot_bound_to_another_context_is_found),
        cmocka_unit_test(a_nonzero_return_of_the_report_stops_the_proof),
        cmocka_unit_test(a_unique_symbol_bound_outside_is_refused_or_found),
        cmocka_unit_test(the_proof_follows_offsets_of_thread_local_variables),
    };

    return cmocka_run_group_tests_name("isolation/proof", tests, NULL, NULL);
}

/* Symbols and versions must be as they were, except for names and bindings that an edit changes. */
#include "elf/check/elf_check_symbol.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "elf/check/elf_check_expect.h"
#include "elf/check/elf_check_section.h"
#include "elf/read/elf_symbols.h"
#include "elf/read/elf_version.h"

/* Whether a symbol may have st_info `have` when the original has `want`. */
static bool may_have_info(const struct elf_check *c, uint8_t have, uint8_t want)
{
    bool unique = GELF_ST_BIND(want) == STB_GNU_UNIQUE;
    bool global = have == GELF_ST_INFO(STB_GLOBAL, GELF_ST_TYPE(want));

    if (unique && (!c->opts || c->opts->flags & EXTI_RW_CLEAR_UNIQUE) && global)
        return true;
    return have == want && !(unique && c->opts && c->opts->flags & EXTI_RW_CLEAR_UNIQUE);
}

struct name_search {
    const struct elf_file *f;
    const char *name;
};

static int is_definition(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    const struct name_search *s = user;
    const char *text = exti__elf_check_text(s->f, ref->name);

    (void)err;
    return ref->kind == ELF_VERSION_DEF && text && strcmp(text, s->name) == 0;
}

/* Whether `s` is the absolute symbol that stands for a version.  It keeps its name, as the version
 * does. */
static bool is_version_node(const struct elf_check *c, const GElf_Sym *s, const char *was,
                            const char *name)
{
    struct name_search search = {&c->before, was};

    return s->st_shndx == SHN_ABS && strcmp(was, name) == 0 &&
           exti__elf_versions(&c->before, is_definition, &search, NULL) > 0;
}

/* The dynamic strings [from, to) are those that may have changed. */
struct changed_strings {
    uint64_t from, to;
};

/* Many at once, as names lie far from each other and are hardly ever changed. */
static struct changed_strings find_changed(const struct elf_check *c)
{
    const struct exti_span b = c->before.strtab.s, a = c->after.strtab.s;
    struct changed_strings r = {0, 0};
    size_t n;

    for (size_t at = 0; at < b.n; at += n) {
        n = b.n - at < 4096 ? b.n - at : 4096;
        if (at + n <= a.n && memcmp(a.p + at, b.p + at, n) == 0)
            continue;
        r.from = r.to ? r.from : at;
        r.to = at + n;
    }
    while (r.from && b.p[r.from - 1])
        r.from--;
    return r;
}

static void compare_name(struct elf_check *c, size_t i)
{
    const GElf_Sym *b = &c->before.sym[i], *a = &c->after.sym[i];
    const char *was = exti__elf_check_text(&c->before, b->st_name);
    const char *name = exti__elf_check_text(&c->after, a->st_name);
    const char *want = !was ? NULL : c->opts ? exti__elf_renamed(c, was) : name;

    if (was && (!name || strcmp(name, want) != 0) && !(name && is_version_node(c, b, was, name)))
        exti__elf_finding(c, exti__elf_sym_offset(&c->after, i),
                          "DT_SYMTAB %zu: name \"%s\", not \"%s\"", i, name ? name : "(none)",
                          want ? want : "(any)");
}

static void compare_symbol(struct elf_check *c, size_t i)
{
    const GElf_Sym *b = &c->before.sym[i], *a = &c->after.sym[i];
    const uint64_t at = exti__elf_sym_offset(&c->after, i);

    if (a->st_value != b->st_value || a->st_size != b->st_size)
        exti__elf_finding(c, at,
                          "DT_SYMTAB %zu: value 0x%" PRIx64 ", size 0x%" PRIx64 ", not 0x%" PRIx64
                          " and 0x%" PRIx64,
                          i, a->st_value, a->st_size, b->st_value, b->st_size);
    if (a->st_shndx != b->st_shndx || a->st_other != b->st_other ||
        !may_have_info(c, a->st_info, b->st_info))
        exti__elf_finding(
            c, at, "DT_SYMTAB %zu: section %u, st_other %u, st_info 0x%x, not %u, %u, 0x%x", i,
            a->st_shndx, a->st_other, a->st_info, b->st_shndx, b->st_other, b->st_info);
}

int exti__elf_check_symbols(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const struct changed_strings changed = find_changed(c);

    (void)err;
    if (a->sym_count != b->sym_count) {
        exti__elf_finding(c, a->symtab.s.base, "DT_SYMTAB: %zu symbols, not %zu", a->sym_count,
                          b->sym_count);
        return 0;
    }
    /* Entry 0 is no symbol, so its fields are compared as bytes. */
    if (a->sym_count && memcmp(a->symtab.s.p, b->symtab.s.p, exti__elf_sym_size(b)) != 0)
        exti__elf_finding(c, a->symtab.s.base, "DT_SYMTAB 0: differs, but is not a symbol");
    for (size_t i = 1; i < a->sym_count && !c->findings.stop; i++) {
        const uint64_t name = b->sym[i].st_name;

        compare_symbol(c, i);
        if (c->expect.rename_slots || a->sym[i].st_name != name ||
            (name >= changed.from && name < changed.to))
            compare_name(c, i);
    }
    return 0;
}

/* ---- versions -------------------------------------------------------------------------------- */

struct version_list {
    struct elf_version_ref *refs;
    size_t n, cap;
};

static int append_version(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct version_list *list = user;

    struct elf_version_ref *p = exti__array_room(list->refs, list->n, &list->cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    list->refs = p;
    list->refs[list->n++] = *ref;
    return 0;
}

static bool is_in_dt_needed(const struct elf_file *f, const char *name)
{
    for (size_t i = 0; i < f->dyn_count; i++) {
        const char *text;

        if (f->dyn[i].d_tag != DT_NEEDED)
            continue;
        text = exti__elf_check_text(f, f->dyn[i].d_un.d_val);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static void compare_version(struct elf_check *c, const struct elf_version_ref *b,
                            const struct elf_version_ref *a)
{
    const char *was = exti__elf_check_text(&c->before, b->name);
    const char *name = exti__elf_check_text(&c->after, a->name), *want = was;
    bool file = b->kind == ELF_VERSION_FILE;

    if (a->kind != b->kind || a->index != b->index || a->name_at != b->name_at) {
        exti__elf_finding(c, a->name_at,
                          "version tables: version %u at 0x%" PRIx64 ", not %u at 0x%" PRIx64,
                          a->index, a->name_at, b->index, b->name_at);
        return;
    }
    if (!was)
        return;
    if (file && name && (!c->opts || exti__elf_follows_needed(c, was, name)))
        want = name;
    if (!name || strcmp(name, want) != 0)
        exti__elf_finding(c, a->name_at, "version tables: %s \"%s\", not \"%s\"",
                          file ? "vn_file" : "version", name ? name : "(none)",
                          want ? want : "(any)");
    /* glibc asserts that a vn_file is a loaded library (dl-version.c, match_symbol). */
    else if (file && is_in_dt_needed(&c->before, was) && !is_in_dt_needed(&c->after, name))
        exti__elf_finding(c, a->name_at, "DT_VERNEED: vn_file \"%s\" is in no DT_NEEDED", name);
}

int exti__elf_check_versions(struct elf_check *c, struct exti_error *err)
{
    struct version_list b = {NULL, 0, 0}, a = {NULL, 0, 0};
    struct exti_error why = {.code = EXTI_OK};
    int rc = exti__elf_versions(&c->before, append_version, &b, err);

    if (!rc) {
        rc = exti__elf_versions(&c->after, append_version, &a, &why);
        if (rc == EXTI_E_NOMEM)
            exti__fail_nomem(err);
        else if (rc)
            exti__elf_finding(c, why.offset, "version tables: %s", why.message);
    }
    if (!rc && a.n != b.n)
        exti__elf_finding(c, EXTI_NO_OFFSET, "version tables: %zu names, not %zu", a.n, b.n);
    for (size_t i = 0; !rc && i < a.n && i < b.n && !c->findings.stop; i++)
        compare_version(c, &b.refs[i], &a.refs[i]);
    exti__free(b.refs);
    exti__free(a.refs);
    return rc == EXTI_E_NOMEM || (rc && why.code == EXTI_OK) ? rc : 0;
}

/* ---- .symtab, for debuggers and strip -------------------------------------------------------- */

/* Decodes one Elf32_Sym or Elf64_Sym. */
static GElf_Sym decode_symbol(const struct elf_file *f, const uint8_t *p)
{
    struct exti_cur cur = exti__cur(exti__span(p, exti__elf_sym_size(f)), f->big_endian);
    GElf_Sym s = {.st_name = exti__cur_u32(&cur)};

    if (!f->is64) {
        s.st_value = exti__cur_u32(&cur);
        s.st_size = exti__cur_u32(&cur);
    }
    s.st_info = exti__cur_u8(&cur);
    s.st_other = exti__cur_u8(&cur);
    s.st_shndx = exti__cur_u16(&cur);
    if (f->is64) {
        s.st_value = exti__cur_u64(&cur);
        s.st_size = exti__cur_u64(&cur);
    }
    return s;
}

/* The value that a symbol gets if it follows its section, as section symbols and _DYNAMIC must: gdb
 * and strip use them. */
static uint64_t value_after_move(const struct elf_check *c, const GElf_Sym *b)
{
    const struct elf_file *f = &c->before, *a = &c->after;

    if (b->st_value == f->phdr[f->dynamic_phdr].p_vaddr && b->st_shndx)
        return a->phdr[a->dynamic_phdr].p_vaddr;
    if (!b->st_shndx || b->st_shndx >= f->shnum)
        return b->st_value;
    return exti__elf_section_moved(c, b->st_shndx) + (b->st_value - f->shdr[b->st_shndx].sh_addr);
}

static void compare_static(struct elf_check *c, uint64_t at, const uint8_t *pb, const uint8_t *pa)
{
    GElf_Sym b = decode_symbol(&c->before, pb), a = decode_symbol(&c->after, pa);
    uint64_t value = value_after_move(c, &b);
    bool fixed = GELF_ST_TYPE(b.st_info) == STT_SECTION ||
                 b.st_value == c->before.phdr[c->before.dynamic_phdr].p_vaddr;

    if (a.st_value != value && (fixed || a.st_value != b.st_value))
        exti__elf_finding(c, at, ".symtab: value 0x%" PRIx64 ", not 0x%" PRIx64, a.st_value, value);
    if (a.st_name != b.st_name || a.st_size != b.st_size || a.st_shndx != b.st_shndx ||
        a.st_other != b.st_other || !may_have_info(c, a.st_info, b.st_info))
        exti__elf_finding(c, at,
                          ".symtab: name 0x%x, size 0x%" PRIx64 ", section %u, st_other %u, "
                          "st_info 0x%x, not 0x%x, 0x%" PRIx64 ", %u, %u, 0x%x",
                          a.st_name, a.st_size, a.st_shndx, a.st_other, a.st_info, b.st_name,
                          b.st_size, b.st_shndx, b.st_other, b.st_info);
}

/* Whether an unchanged table can be wrong: a section with symbols moved, or STB_GNU_UNIQUE was to
 * be cleared. */
static bool may_go_stale(const struct elf_check *c)
{
    if (c->opts && c->opts->flags & EXTI_RW_CLEAR_UNIQUE)
        return true;
    for (size_t i = 1; i < c->before.shnum; i++)
        if (exti__elf_section_moved(c, i) != c->before.shdr[i].sh_addr)
            return true;
    return false;
}

int exti__elf_check_static_symbols(struct elf_check *c, struct exti_error *err)
{
    const size_t size = exti__elf_sym_size(&c->before);
    const bool stale = may_go_stale(c);

    (void)err;
    for (size_t i = 1; i < c->before.shnum; i++) {
        const GElf_Shdr *sh = &c->before.shdr[i];
        struct exti_span b, a;

        if (sh->sh_type != SHT_SYMTAB || sh->sh_flags & SHF_ALLOC || sh->sh_entsize != size ||
            exti__span_sub(c->before.file, sh->sh_offset, sh->sh_size, "", &b, NULL) ||
            exti__span_sub(c->after.file, sh->sh_offset, sh->sh_size, "", &a, NULL))
            continue;
        if (!stale && memcmp(b.p, a.p, b.n) == 0)
            continue;
        for (size_t at = 0; at + size <= b.n && !c->findings.stop; at += size)
            if (stale || memcmp(b.p + at, a.p + at, size) != 0)
                compare_static(c, a.base + at, b.p + at, a.p + at);
    }
    return 0;
}

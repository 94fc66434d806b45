/* Walking the symbol version tables (gABI supplement "Symbol Versioning"). */
#include "elf/read/elf_version.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_symbols.h"

/* Both tables are lists of heads (Verdef, Verneed), each with a list of entries (Verdaux, Vernaux),
 * linked by relative offsets.  Loaders follow the links and ignore the counts; so does this walk.
 * Entries of a hostile file may overlap, so `left` bounds the work by the table's size. */
struct version_walk {
    const struct elf_file *f;
    struct exti_span table;
    bool needs;
    uint64_t left;
    elf_version_fn each;
    void *user;
};

enum { VERDEF_SIZE = 20, VERDAUX_SIZE = 8, VERNEED_SIZE = 16, VERNAUX_SIZE = 16 };

static const char *table_name(const struct version_walk *w)
{
    return w->needs ? "DT_VERNEED" : "DT_VERDEF";
}

static int count_record(struct version_walk *w, uint64_t at, struct exti_error *err)
{
    if (!w->left)
        return exti__fail(err, EXTI_E_FORMAT, w->table.base + at, "%s: its entries overlap",
                          table_name(w));
    w->left--;
    return 0;
}

static int read_record(const struct version_walk *w, uint64_t at, struct exti_cur *c,
                       struct exti_error *err)
{
    const size_t size = w->needs ? VERNEED_SIZE : VERDAUX_SIZE;
    struct exti_span s;
    int rc = exti__span_sub(w->table, at, size, table_name(w), &s, err);

    if (!rc)
        *c = exti__cur(s, w->f->big_endian);
    return rc;
}

/* Walks the entries of one head: the Vernaux of `file`, or the Verdaux of version `index`. */
static int walk_entries(struct version_walk *w, uint64_t at, uint16_t index, uint64_t file,
                        struct exti_error *err)
{
    uint64_t next = 1;

    for (bool first = true; next; first = false) {
        struct elf_version_ref ref = {.index = index, .file = file};
        struct exti_cur c;
        int rc = count_record(w, at, err);

        if (!rc)
            rc = read_record(w, at, &c, err);
        if (rc)
            return rc;
        if (w->needs) {
            exti__cur_skip(&c, 6);
            ref.index = exti__cur_u16(&c);
            ref.kind = ELF_VERSION_NEED;
        } else {
            ref.kind = first ? ELF_VERSION_DEF : ELF_VERSION_DEF_PARENT;
        }
        ref.name_at = c.s.base + c.at;
        ref.name = exti__cur_u32(&c);
        next = exti__cur_u32(&c);
        rc = w->each(w->user, &ref, err);
        if (rc)
            return rc;
        at += next;
    }
    return 0;
}

/* Walks the Verneed or Verdef at `at`; *next is the distance to the one after it. */
static int walk_head(struct version_walk *w, uint64_t at, uint64_t *next, struct exti_error *err)
{
    const size_t size = w->needs ? VERNEED_SIZE : VERDEF_SIZE;
    struct elf_version_ref ref = {.kind = ELF_VERSION_FILE};
    uint64_t count, entries;
    uint16_t index = 0;
    struct exti_span s;
    struct exti_cur c;
    int rc = count_record(w, at, err);

    if (!rc)
        rc = exti__span_sub(w->table, at, size, table_name(w), &s, err);
    if (rc)
        return rc;
    c = exti__cur(s, w->f->big_endian);
    exti__cur_skip(&c, w->needs ? 2 : 4);
    if (!w->needs)
        index = exti__cur_u16(&c);
    count = exti__cur_u16(&c);
    ref.name_at = c.s.base + c.at;
    ref.name = exti__cur_u32(&c); /* for a Verdef this is vd_hash */
    entries = exti__cur_u32(&c);
    *next = exti__cur_u32(&c);
    if (w->needs) {
        rc = w->each(w->user, &ref, err);
        if (rc)
            return rc;
    }
    return count ? walk_entries(w, at + entries, index, ref.name, err) : 0;
}

static int walk_table(struct version_walk *w, struct exti_error *err)
{
    uint64_t at = 0, next = 1;

    while (next) {
        int rc = walk_head(w, at, &next, err);

        if (rc)
            return rc;
        at += next;
    }
    return 0;
}

int exti__elf_versions(const struct elf_file *f, elf_version_fn each, void *user,
                       struct exti_error *err)
{
    struct version_walk w = {.f = f, .each = each, .user = user};
    int rc = 0;

    if (f->verdef.present) {
        w.table = f->verdef.s;
        w.left = w.table.n / VERDAUX_SIZE;
        rc = walk_table(&w, err);
    }
    if (!rc && f->verneed.present) {
        w.table = f->verneed.s;
        w.needs = true;
        w.left = w.table.n / VERNAUX_SIZE;
        rc = walk_table(&w, err);
    }
    return rc;
}

static int store_version_name(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct elf_version_names *v = user;
    size_t index = ref->index & 0x7fff;

    if (ref->kind != ELF_VERSION_DEF && ref->kind != ELF_VERSION_NEED)
        return 0;
    if (index >= v->count) {
        size_t count = index < 32 ? 64 : index * 2;
        const char **names = exti__realloc_array(v->names, count, sizeof *names);

        if (!names)
            return exti__fail_nomem(err);
        memset(names + v->count, 0, (count - v->count) * sizeof *names);
        v->names = names;
        v->count = count;
    }
    return exti__elf_string(v->f, ref->name, "version name", &v->names[index], err);
}

int exti__elf_version_names(const struct elf_file *f, struct elf_version_names *out,
                            struct exti_error *err)
{
    int rc;

    *out = (struct elf_version_names){.f = f};
    rc = exti__elf_versions(f, store_version_name, out, err);
    if (rc)
        exti__free(out->names);
    return rc;
}

const char *exti__elf_sym_version(const struct elf_version_names *v, size_t i)
{
    size_t index = exti__elf_versym(v->f, i) & 0x7fff;

    return index > 1 && index < v->count ? v->names[index] : NULL;
}

bool exti__elf_is_version_node(const struct elf_version_names *v, size_t i, const char *name)
{
    /* exti__elf_sym_version gives no name for the base version (index 1): it is the file's name,
     * which no symbol has. */
    const char *version = exti__elf_sym_version(v, i);

    /* The limit bounds the work on a hostile file with many long, overlapping names. */
    return v->f->sym[i].st_shndx == SHN_ABS && version && strncmp(name, version, 4096) == 0;
}

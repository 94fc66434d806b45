/* Unchanged references come first: each pins the bytes of its string. */
#include "elf/edit/elf_text.h"

#include "elf/read/elf_version.h"

/* Finds the edited vn_file words among all references: both come in table order. */
struct version_cursor {
    struct elf_edit *e;
    size_t next;
};

static int keep_version(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct version_cursor *v = user;

    if (v->next < v->e->version_count && v->e->versions[v->next].name_at == ref->name_at) {
        v->next++;
        return 0;
    }
    return exti__elf_strings_keep(&v->e->strings, ref->name, "symbol version name", err);
}

static int keep_tags(struct elf_edit *e, struct exti_error *err)
{
    for (size_t i = 0; i < e->tag_count; i++) {
        const struct elf_tag *t = &e->tags[i];
        int rc;

        if (t->text || !exti__elf_tag_is_string(t->d.d_tag))
            continue;
        rc = exti__elf_strings_keep(&e->strings, t->d.d_un.d_val, "PT_DYNAMIC: string", err);
        if (rc)
            return rc;
    }
    return 0;
}

static int keep_unchanged(struct elf_edit *e, struct exti_error *err)
{
    struct version_cursor v = {e, 0};
    int rc = keep_tags(e, err);

    if (!rc)
        rc = exti__elf_versions(e->f, keep_version, &v, err);
    for (size_t i = 0; !rc && i < e->f->sym_count; i++)
        if (!e->names || !e->names[i])
            rc = exti__elf_strings_keep(&e->strings, e->f->sym[i].st_name, "DT_SYMTAB: symbol name",
                                        err);
    return rc;
}

static int put_tags(struct elf_edit *e, struct exti_error *err)
{
    for (size_t i = 0; i < e->tag_count; i++) {
        struct elf_tag *t = &e->tags[i];
        uint64_t old = t->slot == SIZE_MAX ? EXTI_NO_OFFSET : t->d.d_un.d_val;
        int rc;

        if (!t->text)
            continue;
        rc = exti__elf_strings_put(&e->strings, old, t->text, true, &t->text_at, err);
        if (rc)
            return rc;
    }
    return 0;
}

int exti__elf_place_text(struct elf_edit *e, struct exti_error *err)
{
    int rc = keep_unchanged(e, err);

    /* Symbols first: they are many, and each one placed over its old name adds no byte. */
    for (size_t i = 0; !rc && e->names && i < e->f->sym_count; i++)
        if (e->names[i])
            rc = exti__elf_strings_put(&e->strings, e->f->sym[i].st_name, e->names[i], false,
                                       &e->name_at[i], err);
    for (size_t i = 0; !rc && i < e->version_count; i++)
        rc = exti__elf_strings_put(&e->strings, e->versions[i].name, e->versions[i].text, true,
                                   &e->versions[i].text_at, err);
    return rc ? rc : put_tags(e, err);
}

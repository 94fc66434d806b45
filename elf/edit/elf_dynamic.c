#include "elf/edit/elf_dynamic.h"

#include "elf/edit/elf_needed.h"
#include "elf/edit/elf_paths.h"
#include "elf/edit/elf_tags.h"
#include "elf/read/elf_withheld.h"

static int copy_tags(struct elf_edit *e, struct exti_error *err)
{
    for (size_t i = 0; i < e->f->dyn_count; i++) {
        const GElf_Dyn *d = &e->f->dyn[i];
        int rc = exti__elf_add_tag(e, d->d_tag, d->d_un.d_val, NULL, err);

        if (rc)
            return rc;
        e->tags[i].slot = i;
    }
    return 0;
}

static int edit_soname(struct elf_edit *e, struct exti_error *err)
{
    struct elf_tag *t = exti__elf_find_tag(e, DT_SONAME);

    if (!e->opts->id)
        return 0;
    if (t)
        return exti__elf_set_text(e, t, e->opts->id, err);
    return exti__elf_add_tag(e, DT_SONAME, 0, e->opts->id, err);
}

static int edit_flags(struct elf_edit *e, struct exti_error *err)
{
    struct elf_tag *flags = exti__elf_find_tag(e, DT_FLAGS);

    if (e->opts->flags & EXTI_RW_CLEAR_NODELETE)
        for (size_t i = 0; i < e->tag_count; i++)
            if (e->tags[i].d.d_tag == DT_FLAGS_1)
                e->tags[i].d.d_un.d_val &= ~(uint64_t)DF_1_NODELETE;
    if (!(e->opts->flags & EXTI_RW_SYMBOLIC) || exti__elf_find_tag(e, DT_SYMBOLIC))
        return 0;
    if (!flags)
        return exti__elf_add_tag(e, DT_FLAGS, DF_SYMBOLIC, NULL, err);
    flags->d.d_un.d_val |= DF_SYMBOLIC;
    return 0;
}

static void withhold_constructors(struct elf_edit *e)
{
    if (e->opts->flags & EXTI_RW_WITHHOLD)
        for (size_t i = 0; i < e->tag_count; i++)
            e->tags[i].d.d_tag = exti__elf_withheld_tag(e->tags[i].d.d_tag);
}

int exti__elf_edit_tags(struct elf_edit *e, struct exti_error *err)
{
    int rc = copy_tags(e, err);

    if (!rc)
        withhold_constructors(e);
    if (!rc)
        rc = exti__elf_edit_needed(e, err);
    if (!rc)
        rc = edit_soname(e, err);
    if (!rc)
        rc = exti__elf_edit_paths(e, err);
    return rc ? rc : edit_flags(e, err);
}

static size_t count_tags(const struct elf_edit *e, int64_t tag)
{
    size_t n = 0;

    for (size_t i = 0; i < e->tag_count; i++)
        n += e->tags[i].d.d_tag == tag;
    return n;
}

void exti__elf_fit_tags(struct elf_edit *e)
{
    const size_t slots = e->f->dyn_slots;
    bool grew = e->tag_count > e->f->dyn_count;

    e->dyn_slots = slots;
    /* Loaders stop at DT_NULL, so one slot stays empty.  An input without DT_NULL that gets no new
     * entry needs none. */
    if (!grew || e->tag_count < slots)
        return;
    /* Loaders work without the counts of relative relocations, which only save a test for each. */
    if (e->tag_count - count_tags(e, DT_RELACOUNT) - count_tags(e, DT_RELCOUNT) < slots) {
        exti__elf_drop_tags(e, DT_RELACOUNT);
        if (e->tag_count >= slots)
            exti__elf_drop_tags(e, DT_RELCOUNT);
        return;
    }
    e->move[ELF_MOVE_DYNAMIC].moves = true;
    e->dyn_slots = e->tag_count + 1;
}

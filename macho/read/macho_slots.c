/* The slots of an image that dyld binds by name. */
#include "macho/read/macho_slots.h"

#include "base/error.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_fat.h"
#include "macho/read/macho_fixups.h"
#include "macho/read/macho_trie.h"

/* Returned to end a walk when `each` asks for it; not an error code. */
#define ENOUGH 1

struct walk {
    struct macho_file f;
    struct macho_chained chained;
    struct exti_span trie;
    int (*each)(void *user, const struct exti_macho_slot *slot);
    void *user;
};

static int report_slot(struct walk *w, struct exti_macho_slot *slot, struct exti_error *err)
{
    int rc = exti__macho_trie_find(w->trie, slot->name, &slot->defined_here, NULL, err);

    if (rc)
        return rc;
    return w->each(w->user, slot) ? ENOUGH : 0;
}

static int on_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct walk *w = user;
    struct exti_macho_slot slot = {.name = b->symbol,
                                   .offset = w->f.segments[b->segment].vmaddr + b->offset -
                                             w->f.text->vmaddr,
                                   .addend = b->addend,
                                   .library = b->ordinal,
                                   .weak_import = (b->flags & BIND_SYMBOL_FLAGS_WEAK_IMPORT) != 0};

    return b->is_override ? 0 : report_slot(w, &slot, err);
}

static int on_weak_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct macho_bind weak = *b;

    weak.ordinal = BIND_SPECIAL_DYLIB_WEAK_LOOKUP;
    return on_bind(user, &weak, err);
}

/* The image offset of file offset `offset`. */
static uint64_t image_offset(const struct macho_file *f, uint64_t offset)
{
    for (size_t i = 0; i < f->segment_count; i++) {
        const struct macho_segment *s = &f->segments[i];

        if (offset >= s->fileoff && offset - s->fileoff < s->filesize)
            return s->vmaddr + (offset - s->fileoff) - f->text->vmaddr;
    }
    return 0;
}

static int on_fixup(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct walk *w = user;
    struct macho_import import;
    struct exti_macho_slot slot;
    int rc;

    if (!x->is_bind)
        return 0;
    rc = exti__macho_chained_import(&w->chained, x->import, &import, err);
    if (rc)
        return rc;
    slot = (struct exti_macho_slot){.name = import.name,
                                    .offset = image_offset(&w->f, x->offset),
                                    .addend = import.addend + x->addend,
                                    .library = import.ordinal,
                                    .weak_import = import.weak};
    return report_slot(w, &slot, err);
}

static int walk_slots(struct walk *w, struct exti_error *err)
{
    const struct macho_file *f = &w->f;
    int rc;

    if (f->pieces[MACHO_CHAINED_FIXUPS].present) {
        rc = exti__macho_chained_open(f, &w->chained, err);
        return rc ? rc : exti__macho_fixups(f, &w->chained, on_fixup, w, err);
    }
    rc = exti__macho_binds(f, MACHO_BIND, on_bind, w, err);
    if (!rc)
        rc = exti__macho_binds(f, MACHO_LAZY_BIND, on_bind, w, err);
    if (!rc)
        rc = exti__macho_binds(f, MACHO_WEAK_BIND, on_weak_bind, w, err);
    return rc;
}

static int walk_slice(struct exti_span slice, struct walk *w, struct exti_error *err)
{
    int rc = exti__macho_open(slice, &w->f, err);

    if (rc)
        return rc;
    w->trie = exti__macho_trie(&w->f);
    rc = walk_slots(w, err);
    exti__macho_close(&w->f);
    return rc == ENOUGH ? 0 : rc;
}

int exti__macho_named_slots(struct exti_span file, uint32_t cputype, uint32_t cpusubtype,
                            int (*each)(void *user, const struct exti_macho_slot *slot), void *user,
                            struct exti_error *err)
{
    struct walk w = {.each = each, .user = user};
    struct macho_fat fat;
    int rc = exti__macho_fat_open(file, &fat, err);

    if (rc)
        return rc;
    rc = exti__fail(err, EXTI_E_UNSUPPORTED, file.base, "has no code for %s",
                    exti__macho_arch(cputype, cpusubtype));
    for (size_t i = 0; i < fat.count; i++) {
        const struct macho_slice *s = &fat.slices[i];

        if (s->cputype == cputype && !((s->cpusubtype ^ cpusubtype) & ~CPU_SUBTYPE_MASK)) {
            rc = walk_slice(s->s, &w, err);
            break;
        }
    }
    exti__macho_fat_close(&fat);
    return rc;
}

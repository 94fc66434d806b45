#include "elf/edit/elf_tags.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

struct elf_tag *exti__elf_find_tag(struct elf_edit *e, int64_t tag)
{
    for (size_t i = e->tag_count; i-- > 0;)
        if (e->tags[i].d.d_tag == tag)
            return &e->tags[i];
    return NULL;
}

int exti__elf_add_tag(struct elf_edit *e, int64_t tag, uint64_t value, const char *text,
                      struct exti_error *err)
{
    struct elf_tag t = {.text = text, .slot = SIZE_MAX};
    struct elf_tag *tags = exti__array_room(e->tags, e->tag_count, &e->tag_cap, sizeof *tags);

    if (!tags)
        return exti__fail_nomem(err);
    e->tags = tags;
    t.d.d_tag = tag;
    t.d.d_un.d_val = value;
    e->tags[e->tag_count++] = t;
    return 0;
}

void exti__elf_drop_tags(struct elf_edit *e, int64_t tag)
{
    size_t kept = 0;

    for (size_t i = 0; i < e->tag_count; i++)
        if (e->tags[i].d.d_tag != tag)
            e->tags[kept++] = e->tags[i];
    e->tag_count = kept;
}

int exti__elf_set_text(struct elf_edit *e, struct elf_tag *t, const char *text,
                       struct exti_error *err)
{
    const char *old;
    int rc;

    if (t->slot != SIZE_MAX) {
        rc = exti__elf_string(e->f, t->d.d_un.d_val, "PT_DYNAMIC: string", &old, err);
        if (rc)
            return rc;
        if (old == text || strcmp(old, text) == 0)
            text = NULL;
    }
    t->text = text;
    return 0;
}

/* More than the file's own size: a hostile file can have very many $ORIGIN. */
enum { MOST_TEXT = 1 << 24 };

int exti__elf_own_text(struct elf_edit *e, char *text, struct exti_error *err)
{
    char **texts;

    if (!text)
        return exti__fail_nomem(err);
    e->text_bytes += strlen(text);
    if (e->text_bytes > e->f->file.n + MOST_TEXT) {
        exti__free(text);
        return exti__fail(err, EXTI_E_NOSPACE, EXTI_NO_OFFSET,
                          "dynamic section: the new library names and search paths exceed %d bytes",
                          MOST_TEXT);
    }
    texts = exti__array_room(e->texts, e->text_count, &e->text_cap, sizeof *texts);
    if (!texts) {
        exti__free(text);
        return exti__fail_nomem(err);
    }
    e->texts = texts;
    e->texts[e->text_count++] = text;
    return 0;
}

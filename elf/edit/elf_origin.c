/* $ORIGIN stands for the folder of the file, so a copy needs the original's folder spelt out. */
#include "elf/edit/elf_origin.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_tags.h"

/* ld.so matches the whole identifier: $ORIGINAL has no $ORIGIN in it. */
size_t exti__elf_origin_token(const char *p)
{
    if (strncmp(p, "${ORIGIN}", 9) == 0)
        return 9;
    if (strncmp(p, "$ORIGIN", 7) == 0 && !isalnum((unsigned char)p[7]) && p[7] != '_')
        return 7;
    return 0;
}

/* Far longer than any path that a system opens.  Bounds the work on a hostile file, many entries of
 * which may name one long string. */
enum { LONGEST = 65536 };

static size_t count_tokens(const char *text)
{
    size_t n = 0;

    for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$'))
        n += exti__elf_origin_token(p) != 0;
    return n;
}

int exti__elf_translate(struct elf_edit *e, const char **text, struct exti_error *err)
{
    const char *origin = e->opts->origin, *p = *text;
    size_t tokens, step;
    char *out, *to;
    int rc;

    if (!origin)
        return 0;
    if (strnlen(p, LONGEST) == LONGEST)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "dynamic section: a library name or search path has %d bytes or more",
                          LONGEST);
    tokens = count_tokens(p);
    if (!tokens)
        return 0;
    if (strpbrk(origin, ":$"))
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "'%s' cannot replace $ORIGIN: loaders interpret its ':' or '$'", origin);
    out = to = exti__alloc(strlen(p) + tokens * strlen(origin) + 1);
    while (out && *p) {
        step = exti__elf_origin_token(p);
        if (step) {
            memcpy(to, origin, strlen(origin));
            to += strlen(origin);
            p += step;
        } else {
            *to++ = *p++;
        }
    }
    if (out)
        *to = 0;
    rc = exti__elf_own_text(e, out, err);
    if (!rc)
        *text = out;
    return rc;
}

#include "loader/resolve/string_tokens.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/resolve/search_elf_state.h"

enum { TOKENS = 3 };
struct token {
    const char *name, *value;
    size_t n; /* of the value */
};

/* The length of the token after a $, at `p`, or 0.  Without braces, no character that could
 * continue an identifier may follow it. */
static size_t token_length(const char *p, const char *name)
{
    const bool braced = *p == '{';
    const size_t n = strlen(name);
    const char *end;

    if (strncmp(p + braced, name, n) != 0)
        return 0;
    end = p + braced + n;
    if (braced)
        return *end == '}' ? n + 2 : 0;
    return strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ? 0 : n;
}

/* The token at `p`, a $; NULL for a $ that stands for itself. */
static const struct token *token_at(const struct token *tokens, const char *p, size_t *length)
{
    for (size_t i = 0; i < TOKENS; i++) {
        *length = token_length(p + 1, tokens[i].name);
        if (*length)
            return &tokens[i];
    }
    return NULL;
}

/* Returns the length of the expansion, and writes it to `out` unless that is NULL.  SIZE_MAX where
 * a token has no value. */
static size_t write_expansion(const struct token *tokens, const char *text, char *out)
{
    size_t n = 0;

    for (const char *p = text; *p;) {
        size_t length;
        const struct token *t = *p == '$' ? token_at(tokens, p, &length) : NULL;

        if (t && !t->value)
            return SIZE_MAX;
        if (out)
            memcpy(out + n, t ? t->value : p, t ? t->n : 1);
        n += t ? t->n : 1;
        p += t ? length + 1 : 1;
    }
    if (out)
        out[n] = 0;
    return n;
}

static size_t folder_length(const char *path)
{
    const char *slash = exti__path_last_slash(path);

    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

int exti__expand_tokens(const struct exti_search *s, const char *path, const char *text, char **out,
                        struct exti_error *err)
{
    const struct token tokens[TOKENS] = {
        {"ORIGIN", path && exti__path_is_absolute(path) ? path : NULL,
         path ? folder_length(path) : 0},
        {"LIB", s->lib, s->lib ? strlen(s->lib) : 0},
        {"PLATFORM", s->platform, s->platform ? strlen(s->platform) : 0},
    };
    const size_t n = write_expansion(tokens, text, NULL);
    char *made = NULL;

    if (n != SIZE_MAX) {
        if (n >= EXTI_PATH_MAX * 16)
            return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                              "a library name or search path expands to %zu bytes", n);
        made = exti__alloc(n + 1);
        if (!made)
            return exti__fail_nomem(err);
        write_expansion(tokens, text, made);
    }
    *out = made;
    return 0;
}

/* The library search path: DT_RUNPATH, or DT_RPATH where the file has that. */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_plan.h"

/* The length of the $ORIGIN or ${ORIGIN} at `p`, or 0: as ld.so reads it, for which $ORIGINAL is
 * something else. */
static size_t origin_token(const char *p)
{
    if (strncmp(p, "${ORIGIN}", 9) == 0)
        return 9;
    if (strncmp(p, "$ORIGIN", 7) == 0 && !isalnum((unsigned char)p[7]) && p[7] != '_')
        return 7;
    return 0;
}

/* Far longer than any path that a system opens.  Bounds the work on a hostile file, whose many
 * entries may name one long string. */
enum { LONGEST = 65536 };

static size_t count_tokens(const char *text)
{
    size_t n = 0;

    for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$'))
        n += origin_token(p) != 0;
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
                          "a library name or search path has %d bytes or more", LONGEST);
    tokens = count_tokens(p);
    if (!tokens)
        return 0;
    if (strpbrk(origin, ":$"))
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "'%s' cannot stand for $ORIGIN: loaders read its ':' or '$' as their own",
                          origin);
    out = to = exti__alloc(strlen(p) + tokens * strlen(origin) + 1);
    while (out && *p) {
        step = origin_token(p);
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

/* "head:tail", or either alone where the other is empty. */
static int join(struct elf_edit *e, const char *head, const char *tail, const char **out,
                struct exti_error *err)
{
    size_t n = strlen(head), m = strlen(tail);
    char *text;
    int rc;

    if (!n || !m) {
        *out = n ? head : tail;
        return 0;
    }
    text = exti__alloc(n + m + 2);
    if (text) {
        memcpy(text, head, n);
        text[n] = ':';
        memcpy(text + n + 1, tail, m + 1);
    }
    rc = exti__elf_own_text(e, text, err);
    if (!rc)
        *out = text;
    return rc;
}

/* Whether `path` begins with the entries `text`, in which `origin` stands for $ORIGIN. */
static bool begins_with(const char *path, const char *text, const char *origin)
{
    while (*text) {
        size_t token = origin ? origin_token(text) : 0, n = token ? strlen(origin) : 1;

        if (strncmp(path, token ? origin : text, n) != 0)
            return false;
        path += n;
        text += token ? token : 1;
    }
    return !*path || *path == ':';
}

/* Whether the file has the id that it is to get: then this edit has been made before. */
static bool is_edited(const struct elf_edit *e)
{
    const GElf_Dyn *soname = exti__elf_tag(e->f, DT_SONAME);
    const char *id;

    return e->opts->id && soname &&
           !exti__span_cstr(e->f->strtab.s, soname->d_un.d_val, "DT_SONAME", &id, NULL) &&
           strcmp(id, e->opts->id) == 0;
}

/* The entries of `path` behind those to prepend, which an earlier edit may have put there.  An $ORIGIN
 * that the original has at its start is another folder than the one to prepend, unless this file is a
 * copy already or what $ORIGIN stood for follows. */
static const char *behind(const struct elf_edit *e, const char *path, const char *prepend)
{
    const char *origin = is_edited(e) ? NULL : e->opts->origin;
    size_t n = strlen(prepend);

    if (!n || !begins_with(path, prepend, NULL))
        return path;
    if (origin && origin_token(prepend) && !(path[n] && begins_with(path + n + 1, prepend, origin)))
        return path;
    return path[n] ? path + n + 1 : path + n;
}

/* The new text of one path entry; `first` is the one that loaders search. */
static int new_path(struct elf_edit *e, const char *old, bool first, const char **out,
                    struct exti_error *err)
{
    const char *prepend = e->opts->path_prepend && first ? e->opts->path_prepend : "";
    const char *rest;
    int rc = 0;

    if (e->opts->path_set && first) {
        rest = e->opts->path_set;
    } else {
        rest = behind(e, old, prepend);
        rc = exti__elf_translate(e, &rest, err);
    }
    return rc ? rc : join(e, prepend, rest, out, err);
}

/* Loaders ignore DT_RPATH beside a DT_RUNPATH. */
static int64_t searched_tag(struct elf_edit *e)
{
    if (!exti__elf_find_tag(e, DT_RUNPATH) && exti__elf_find_tag(e, DT_RPATH))
        return DT_RPATH;
    return DT_RUNPATH;
}

/* The last entry of that kind, which is the one that loaders obey. */
static int edit_path_tag(struct elf_edit *e, int64_t tag, bool searched, struct exti_error *err)
{
    struct elf_tag *t = exti__elf_find_tag(e, tag);
    const char *old, *text;
    int rc;

    if (!t)
        return 0;
    rc = exti__elf_str(e->f, t->d.d_un.d_val, tag == DT_RPATH ? "DT_RPATH" : "DT_RUNPATH", &old,
                       err);
    if (!rc)
        rc = new_path(e, old, searched, &text, err);
    return rc ? rc : exti__elf_set_text(e, t, text, err);
}

int exti__elf_edit_paths(struct elf_edit *e, struct exti_error *err)
{
    const bool removes = e->opts->path_set && !*e->opts->path_set &&
                         (!e->opts->path_prepend || !*e->opts->path_prepend);
    const int64_t searched = searched_tag(e);
    const char *text;
    int rc;

    if (removes) {
        exti__elf_drop_tags(e, DT_RPATH);
        exti__elf_drop_tags(e, DT_RUNPATH);
        return 0;
    }
    if (exti__elf_find_tag(e, searched)) {
        rc = edit_path_tag(e, DT_RPATH, searched == DT_RPATH, err);
        return rc ? rc : edit_path_tag(e, DT_RUNPATH, searched == DT_RUNPATH, err);
    }
    rc = new_path(e, "", true, &text, err);
    if (rc || !*text)
        return rc;
    return exti__elf_add_tag(e, DT_RUNPATH, 0, text, err);
}

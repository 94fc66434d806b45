/* The path to edit is DT_RUNPATH, or DT_RPATH in a file that has only that. */
#include "elf/edit/elf_paths.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_origin.h"
#include "elf/edit/elf_tags.h"

/* Gives "head:tail", or one of them when the other is empty. */
static int join_paths(struct elf_edit *e, const char *head, const char *tail, const char **out,
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

/* Whether `path` begins with the entries of `text`, in which `origin` (unless NULL) stands for
 * $ORIGIN. */
static bool path_begins_with(const char *path, const char *text, const char *origin)
{
    while (*text) {
        size_t token = origin ? exti__elf_origin_token(text) : 0, n = token ? strlen(origin) : 1;

        if (strncmp(path, token ? origin : text, n) != 0)
            return false;
        path += n;
        text += token ? token : 1;
    }
    return !*path || *path == ':';
}

/* Whether the file has the requested DT_SONAME already: then it is a copy that this edit made. */
static bool has_new_soname(const struct elf_edit *e)
{
    const GElf_Dyn *soname = exti__elf_tag(e->f, DT_SONAME);
    const char *id;

    return e->opts->id && soname &&
           !exti__span_cstr(e->f->strtab.s, soname->d_un.d_val, "DT_SONAME", &id, NULL) &&
           strcmp(id, e->opts->id) == 0;
}

/* `path` without the entries of `prepend` at its start, where an earlier edit may have put them.
 * They count as an earlier edit's unless they have a $ORIGIN and the file is an original: an
 * original's $ORIGIN is another folder than the prepended one.  A file is a copy if it has the new
 * DT_SONAME, or if the entries follow once more with $ORIGIN spelt out. */
static const char *after_prepended(const struct elf_edit *e, const char *path, const char *prepend)
{
    const char *origin = has_new_soname(e) ? NULL : e->opts->origin;
    size_t n = strlen(prepend);

    if (!n || !path_begins_with(path, prepend, NULL))
        return path;
    if (origin && exti__elf_origin_token(prepend) &&
        !(path[n] && path_begins_with(path + n + 1, prepend, origin)))
        return path;
    return path[n] ? path + n + 1 : path + n;
}

/* Gives the new text of one search path; `searched` says whether loaders use it. */
static int new_path(struct elf_edit *e, const char *old, bool searched, const char **out,
                    struct exti_error *err)
{
    const char *prepend = e->opts->path_prepend && searched ? e->opts->path_prepend : "";
    const char *rest;
    int rc = 0;

    if (e->opts->path_set && searched) {
        rest = e->opts->path_set;
    } else {
        rest = after_prepended(e, old, prepend);
        rc = exti__elf_translate(e, &rest, err);
    }
    return rc ? rc : join_paths(e, prepend, rest, out, err);
}

/* Loaders ignore DT_RPATH in a file that has DT_RUNPATH. */
static int64_t searched_tag(struct elf_edit *e)
{
    if (!exti__elf_find_tag(e, DT_RUNPATH) && exti__elf_find_tag(e, DT_RPATH))
        return DT_RPATH;
    return DT_RUNPATH;
}

static int edit_path_tag(struct elf_edit *e, int64_t tag, bool searched, struct exti_error *err)
{
    struct elf_tag *t = exti__elf_find_tag(e, tag);
    const char *old, *text;
    int rc;

    if (!t)
        return 0;
    rc = exti__elf_string(e->f, t->d.d_un.d_val, tag == DT_RPATH ? "DT_RPATH" : "DT_RUNPATH", &old,
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

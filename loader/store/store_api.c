#include "loader/store/store_api.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_remove.h"
#include "base/path.h"
#include "loader/store/edits.h"
#include "loader/store/store_ensure.h"
#include "loader/store/store_entry.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_interposed.h"
#include "loader/store/store_names.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_policy.h"
#include "loader/store/store_state.h"
#include "loader/store/store_write.h"
#include "loader/store/target.h"

int exti__store_choose_api(struct exti_store *s, const char *wanted, char **source,
                           struct exti_error *err)
{
    int rc;

    if (!wanted && !s->manifest.api.source)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "%s",
                          s->created ? "a new context directory needs an API library to copy"
                                     : EXTI_MANIFEST_FILE
                              " is missing or damaged; name the API "
                              "library, and all copies will be made again");
    rc = exti__fs_realpath(wanted ? wanted : s->manifest.api.source, source, err);
    if (rc)
        return rc;
    if (s->manifest.api.source && strcmp(*source, s->manifest.api.source) != 0) {
        rc = exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                        "has copies for the API library %s, not for %s; use another directory",
                        s->manifest.api.source, *source);
        exti__free(*source);
    }
    return rc;
}

static void discard_file(const char *dir, const char *name)
{
    char *path = exti__path_join(dir, name);

    if (path)
        exti__fs_discard(path);
    exti__free(path);
}

static int plan_api(struct exti_store *s, const struct exti_copy_request *r, const char *name,
                    const struct exti_image *im, struct exti_entry *e, struct exti_edits *edits,
                    struct exti_error *err)
{
    int rc = exti__store_entry(s, r, name, im, e, err);

    if (!rc)
        rc = exti__edits_api(&s->manifest, e, im, &s->renames, edits, err);
    return rc ? rc : exti__store_edits(edits, e, err);
}

/* Makes the API copy anew.  A new generation gets another name: processes that have loaded the
 * old copy keep it, and copies that refer to the old name are recognised as stale. */
static int make_api(struct exti_store *s, const char *source, const struct exti_file_id *id,
                    const struct exti_image *im, bool keep_generation, struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    struct exti_entry e = {.id = *id};
    const struct exti_copy_request r = {.source = source, .first = source, .root = true};
    struct exti_pattern_turn turn = {NULL};
    struct exti_edits edits = {0};
    char name[EXTI_FILE_NAME_MAX + 1];
    bool made;
    int rc;

    if (!keep_generation)
        m->generation++;
    if (im->format == EXTI_FORMAT_PE)
        exti__copy_name_pe_api(source, m->name, m->generation, name);
    else
        exti__copy_name_api(source, m->name, m->generation, name);
    rc = exti__store_check_name(s, source, name, err);
    made = !rc && exti__pattern_use(s, &r, &e, &turn);
    if (!rc && !made)
        rc = plan_api(s, &r, name, im, &e, &edits, err);
    if (!rc && !made) {
        s->replaced = s->replaced || (m->api.copy && strcmp(m->api.copy, name) == 0);
        rc = exti__store_write(s, im, &edits, &r, &e, err);
        /* The copy may be there, but not safe on the disk.  No manifest would ever name it. */
        if (rc && !(m->api.copy && strcmp(m->api.copy, name) == 0))
            discard_file(s->dir, name);
    }
    exti__pattern_planned(&turn);
    if (!rc) {
        if (m->api.copy && strcmp(m->api.copy, name) != 0)
            discard_file(s->dir, m->api.copy);
        s->replaced = s->replaced || m->api.copy;
        exti__entry_clear(&m->api);
        m->api = e;
        m->target = exti__target_of(im);
        m->names = EXTI_PRIVATE_NAMES;
        s->dirty = true;
    } else {
        exti__entry_clear(&e);
    }
    exti__edits_free(&edits);
    return rc;
}

/* Makes the API copy unless it is up to date; `im` describes the source. */
static int update_api(struct exti_store *s, const char *source, const struct exti_image *im,
                      const struct exti_store_opts *opts, enum exti_copy_state state,
                      struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    struct exti_file_id id;
    bool same = m->api.source != NULL, rename = opts->rename;
    int rc = exti__fs_id(source, &id, err);

    if (!rc && !m->renamed && !rename)
        rc = exti__store_is_interposed(s, im, (struct exti_uncounted){0}, &rename, err);
    if (rc)
        return rc;
    if (!m->renamed && rename) {
        m->renamed = true;
        same = false;
    }
    if (m->renamed)
        rc = exti__private_symbols_build(im, &s->renames, err);
    /* An earlier version's API copy lacks the longer names, which new copies would refer to. */
    same = same && exti__private_symbols_are(&s->renames, m->names);
    if (!rc && m->policy.closure == EXTI_CLOSURE_DEFAULT) {
        m->target = exti__target_of(im);
        rc = exti__store_choose_policy(m, im, opts, err);
        if (!rc)
            rc = exti__store_record_search(s, err);
    }
    if (rc || (same && state == EXTI_COPY_FRESH))
        return rc;
    return make_api(s, source, &id, im, same && exti__fs_same_version(&id, &m->api.id), err);
}

int exti__store_ensure_api(struct exti_store *s, const char *source,
                           const struct exti_store_opts *opts, struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    enum exti_copy_state state = EXTI_COPY_STALE;
    struct exti_image *im;
    int rc = 0;

    if (m->policy.closure != EXTI_CLOSURE_DEFAULT) {
        rc = exti__store_check_policy(&m->policy, opts, err);
        if (rc)
            exti__error_file(err, s->dir);
        if (!rc)
            rc = exti__store_record_search(s, err);
    }
    if (!rc && m->api.source)
        state = exti__store_copy_state(s, &m->api);
    if (state == EXTI_COPY_FRESH &&
        (exti__store_may_be_torn(s, &m->api) || m->api.resolution != m->resolution ||
         !exti__store_is_of_kind(s, &m->api) || !exti__store_has_needs(s, source, &m->api)))
        state = EXTI_COPY_MISSING;
    /* What this process exports matters only where copies will be loaded. */
    if (!rc && (state != EXTI_COPY_FRESH || !opts->copy_only || opts->rename || m->renamed)) {
        rc = exti__inspect(source, &im, err);
        if (rc)
            return rc;
        rc = update_api(s, source, im, opts, state, err);
        exti_image_free(im);
    }
    return rc ? rc : exti__store_ensure(s, source, false, err);
}

/* Whether a copy is up to date, so that it is neither written again nor planned. */
#include "loader/store/store_fresh.h"

#include <string.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/image/file_memo.h"
#include "loader/process/program.h"
#include "loader/resolve/policy.h"
#include "loader/resolve/search.h"
#include "loader/store/manifest_api.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_state.h"

/* Whether the folder of `source`, which the loader searches before all others, has `name` now. */
static bool is_beside(const struct exti_store *s, const char *source, const char *name)
{
    const struct exti_search_ops *ops = exti__search_ops(s->manifest.target.format);
    const size_t folder = (size_t)(exti__base_name(source) - source), size = strlen(name) + 1;
    struct exti_file_id id;
    char *path;
    bool is;

    if (!ops || !ops->by_file || !exti__path_is_plain_name(name))
        return false;
    path = exti__alloc(folder + size);
    if (!path)
        return false;
    memcpy(path, source, folder);
    memcpy(path + folder, name, size);
    is = !exti__fs_id(path, &id, NULL);
    exti__free(path);
    return is;
}

/* Stands for the file and all that decides with it whether it is isolated. */
static uint64_t decision_key(const struct exti_store *s, const char *file)
{
    const struct exti_manifest *m = &s->manifest;
    uint64_t key = exti__file_version(file);

    key = exti__file_version_with(key, exti__closure_name(m->policy.closure));
    key = exti__file_version_with(key, m->search ? m->search : "");
    key = exti__file_version_with(key, m->api.source ? m->api.source : "");
    for (size_t i = 0; i < m->policy.rule_count; i++) {
        key = exti__file_version_with(key, m->policy.rules[i].share ? "share" : "isolate");
        key = exti__file_version_with(key, m->policy.rules[i].glob);
    }
    return key;
}

/* Whether a library that the entry's copy shares is one that this process's copies get a copy of,
 * because its program exports symbols of the library, or of one that this needs.  Where nothing can
 * be written, the library stays shared, and what is captured is told. */
static bool is_captured_here(struct exti_store *s, const struct exti_need *n)
{
    static struct exti_file_memo shared;
    bool isolated = false;
    uint64_t key;
    char why[8];
    int rc = 0;

    if (!s->adapts || n->isolated || !exti__program_has_exports())
        return false;
    key = decision_key(s, n->file);
    if (exti__file_memo_has(&shared, key))
        return false;
    if (!exti__policy_is_single(s->manifest.target.format, exti__base_name(n->name), n->file))
        rc = exti__store_classify(s, n->file, &isolated, why, sizeof why, NULL);
    if (!rc && !isolated)
        exti__file_memo_add(&shared, key);
    return isolated || rc == EXTI_E_NOMEM; /* which whoever makes the copy again reports */
}

bool exti__store_needs_stay(struct exti_store *s, const char *first, const struct exti_entry *e)
{
    struct exti_file_id id;

    for (size_t i = 0; i < e->need_count; i++) {
        const struct exti_need *n = &e->needs[i];

        if (n->file
                ? exti__fs_id(n->file, &id, NULL) != 0
                : is_beside(s, e->source, n->name) || exti__store_finds_need(s, first, e, n->name))
            return false;
    }
    return true;
}

bool exti__store_has_needs(struct exti_store *s, const char *first, const struct exti_entry *e)
{
    if (!exti__store_needs_stay(s, first, e))
        return false;
    for (size_t i = 0; i < e->need_count; i++)
        if (e->needs[i].file && is_captured_here(s, &e->needs[i]))
            return false;
    return true;
}

/* LoadLibrary runs DllMain, and the TLS callbacks before it, whatever a loader does. */
bool exti__store_withholds(const struct exti_store *s, enum exti_file_format format)
{
    return s->withhold && (format == EXTI_FORMAT_ELF || format == EXTI_FORMAT_MACHO);
}

bool exti__store_is_of_kind(const struct exti_store *s, const struct exti_entry *e)
{
    return e->withheld == exti__store_withholds(s, s->manifest.target.format) &&
           (!e->left_out.count || s->lean);
}

static bool is_up_to_date(struct exti_store *s, const char *first, const struct exti_entry *e,
                          bool symbolic)
{
    return e && (e->symbolic || !symbolic) && exti__store_is_of_kind(s, e) &&
           e->resolution == s->manifest.resolution && !exti__store_may_be_torn(s, e) &&
           exti__store_copy_state(s, e) == EXTI_COPY_FRESH && exti__store_has_needs(s, first, e);
}

/* Whether the copy that `e` describes imports from the copy of python3.dll. */
static bool imports_from(const struct exti_entry *e, const struct exti_entry *stable)
{
    if (e->stable_abi_copy && strcmp(e->stable_abi_copy, stable->copy) == 0)
        return true;
    for (size_t i = 0; i < e->need_count; i++)
        if (e->needs[i].to && strcmp(e->needs[i].to, stable->copy) == 0)
            return true;
    return false;
}

/* A copy that imports from the copy of python3.dll is fresh only while that one is. */
static bool has_stable_abi(struct exti_store *s, const struct exti_entry *e)
{
    const struct exti_entry *stable = exti__manifest_stable_abi(&s->manifest);

    return !stable || stable == e || !imports_from(e, stable) ||
           is_up_to_date(s, stable->source, stable, false);
}

bool exti__store_is_fresh(struct exti_store *s, const char *first, const struct exti_entry *e,
                          bool symbolic)
{
    return is_up_to_date(s, first, e, symbolic) && has_stable_abi(s, e);
}

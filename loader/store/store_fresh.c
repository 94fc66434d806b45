/* Whether a copy is up to date, so that it is neither written again nor planned. */
#include "loader/store/store_fresh.h"

#include <string.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/resolve/captured.h"
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

/* Whether a library that the entry's copy shares is one that this process's copies get a copy of,
 * because its program exports the library's symbols.  Where nothing can be written, the library
 * stays shared, and what is captured is told. */
static bool is_captured_here(struct exti_store *s, const struct exti_need *n)
{
    bool isolated;
    char why[8];

    return s->adapts && !n->isolated && exti__is_file_captured(n->file) &&
           !exti__store_classify(s, n->file, &isolated, why, sizeof why, NULL) && isolated;
}

/* A need is looked for again when its file is gone or cannot be looked at, when it had none and one
 * is there now, or when it is to be isolated here. */
bool exti__store_has_needs(struct exti_store *s, const char *first, const struct exti_entry *e)
{
    struct exti_file_id id;

    for (size_t i = 0; i < e->need_count; i++) {
        const struct exti_need *n = &e->needs[i];

        if (n->file
                ? exti__fs_id(n->file, &id, NULL) != 0 || is_captured_here(s, n)
                : is_beside(s, e->source, n->name) || exti__store_finds_need(s, first, e, n->name))
            return false;
    }
    return true;
}

/* LoadLibrary runs DllMain, and the TLS callbacks before it, whatever a loader does. */
bool exti__store_withholds(const struct exti_store *s, enum exti_file_format format)
{
    return s->withhold && (format == EXTI_FORMAT_ELF || format == EXTI_FORMAT_MACHO);
}

bool exti__store_is_of_kind(const struct exti_store *s, const struct exti_entry *e)
{
    return e->withheld == exti__store_withholds(s, s->manifest.target.format);
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

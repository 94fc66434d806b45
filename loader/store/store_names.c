/* The file name of each copy: our proposal, the hook's answer and the check of that. */
#include "loader/store/store_names.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/path.h"
#include "loader/store/manifest_api.h"

/* The entry whose copy has this name already; Windows file names do not tell case apart. */
static const struct exti_entry *entry_of_copy_name(const struct exti_manifest *m, const char *name)
{
    const struct exti_entry *e = exti__manifest_find_copy(m, name);

    if (e || m->target.format != EXTI_FORMAT_PE)
        return e;
    if (m->api.copy && strcasecmp(m->api.copy, name) == 0)
        return &m->api;
    for (size_t i = 0; i < m->count; i++)
        if (strcasecmp(m->entries[i].copy, name) == 0)
            return &m->entries[i];
    return NULL;
}

/* Whether imports of other copies may name this one, so that its name must suit an import table. */
static bool is_importable(const struct exti_manifest *m, const char *source)
{
    const size_t n = strlen(source);

    return m->policy.closure != EXTI_CLOSURE_NONE && m->target.format == EXTI_FORMAT_PE && n > 4 &&
           strcasecmp(source + n - 4, ".dll") == 0;
}

void exti__store_propose_name(const struct exti_store *s, const char *source, char *name)
{
    const struct exti_manifest *m = &s->manifest;

    if (exti__manifest_is_stable_abi(m, exti__base_name(source)))
        exti__copy_name_pe_stable_abi(m->name, name);
    else if (is_importable(m, source))
        exti__copy_name_pe(source, m->name, name);
    else
        exti__copy_name(source, m->name, name);
}

int exti__store_check_name(const struct exti_store *s, const char *source, char *name,
                           struct exti_error *err)
{
    const struct exti_entry *other;

    if (s->copy_name && s->copy_name(s->user, source, name, EXTI_FILE_NAME_MAX + 1) < 0)
        return exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET, "the copy_name hook refused a name");
    name[EXTI_FILE_NAME_MAX] = 0;
    if (!exti__path_is_plain_name(name) || name[0] == '.' || strcmp(name, EXTI_MANIFEST_FILE) == 0)
        return exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET,
                          "the copy_name hook gave '%s', which is not a plain file name", name);
    other = entry_of_copy_name(&s->manifest, name);
    if (other && strcmp(other->source, source) != 0)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "its copy would be called '%s', as the copy of %s already is", name,
                          other->source);
    return 0;
}

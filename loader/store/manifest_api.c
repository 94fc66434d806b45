#include "loader/store/manifest_api.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "loader/resolve/dll_name.h"
#include "loader/resolve/stable_abi_name.h"

/* The stable ABI's library that goes with the API library; NULL: there is none. */
static const char *stable_abi_name(const struct exti_manifest *m)
{
    if (!m->api.source || m->target.format != EXTI_FORMAT_PE)
        return NULL;
    return exti__stable_abi_name_for(m->api.source, m->api.source_name);
}

bool exti__manifest_is_stable_abi(const struct exti_manifest *m, const char *name)
{
    const char *own = stable_abi_name(m);

    return own && exti__is_stable_abi_name(name, own);
}

const struct exti_entry *exti__manifest_stable_abi(const struct exti_manifest *m)
{
    const char *own = stable_abi_name(m);

    for (size_t i = 0; own && i < m->count; i++)
        if (exti__is_stable_abi_name(exti__base_name(m->entries[i].source), own))
            return &m->entries[i];
    return NULL;
}

static bool same_library_name(const struct exti_manifest *m, const char *a, const char *b)
{
    return m->target.format == EXTI_FORMAT_PE ? exti__same_dll(a, b) : strcmp(a, b) == 0;
}

bool exti__manifest_is_api(const struct exti_manifest *m, const char *name)
{
    const char *base = exti__base_name(name), *api = exti__base_name(m->api.source);

    return (m->api.source_name &&
            same_library_name(m, base, exti__base_name(m->api.source_name))) ||
           same_library_name(m, base, api) ||
           (strcmp(base, "libpython3.so") == 0 && exti__starts_with(api, "libpython3.")) ||
           exti__manifest_is_stable_abi(m, base);
}

#include "loader/resolve/stable_abi_name.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "loader/resolve/dll_name.h"

static const char stem[] = "python3";

/* Debug and free-threaded builds have one of their own. */
static const char *const names[] = {"python3.dll", "python3_d.dll", "python3t.dll",
                                    "python3t_d.dll"};
#define NAME_COUNT (sizeof names / sizeof *names)

/* "_d.dll" of "python311_d.dll"; NULL if it is no API library of Python's. */
static const char *suffix_of(const char *api)
{
    if (strncasecmp(api, stem, sizeof stem - 1) != 0)
        return NULL;
    api += sizeof stem - 1;
    return isdigit((unsigned char)*api) ? api + strspn(api, "0123456789") : NULL;
}

const char *exti__stable_abi_name(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (exti__same_dll(name, names[i]))
            return names[i];
    return NULL;
}

const char *exti__stable_abi_name_for(const char *api, const char *id)
{
    const char *suffix = suffix_of(exti__base_name(api));

    if (!suffix && id)
        suffix = suffix_of(exti__base_name(id));
    for (size_t i = 0; suffix && i < NAME_COUNT; i++)
        if (exti__same_dll(suffix, names[i] + sizeof stem - 1))
            return names[i];
    return NULL;
}

bool exti__is_stable_abi_name(const char *name, const char *own)
{
    return exti__same_dll(name, own) || exti__same_dll(name, names[0]);
}

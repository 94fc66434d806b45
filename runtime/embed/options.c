#include "runtime/embed/options.h"

#include <stdlib.h>
#include <string.h>

#include <extisolate/python.h>

#include "runtime/fail.h"
#include "runtime/python.h"

int extipy__options_read(void *out, size_t known, const void *given, struct exti_error *err)
{
    const unsigned char *bytes = given;
    size_t size;

    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return pyrt_fail(err, EXTI_E_ARG, "the options have no size: set .size to their sizeof");
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return pyrt_fail(err, EXTI_E_ARG,
                             "byte %zu of the options is set, which this version of the library "
                             "does not know",
                             i);
    memset(out, 0, known);
    memcpy(out, given, size < known ? size : known);
    return 0;
}

int extipy__options_write(void *given, const void *filled, size_t known)
{
    size_t size;

    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return EXTI_E_ARG;
    if (size > known)
        size = known;
    memcpy((char *)given + sizeof size, (const char *)filled + sizeof size, size - sizeof size);
    return 0;
}

struct pyrt_setting *extipy__options_settings(const struct extipy_opts *opts)
{
    struct pyrt_setting *settings = calloc(opts->setting_count + 1, sizeof *settings);

    for (size_t i = 0; settings && i < opts->setting_count; i++)
        settings[i] = (struct pyrt_setting){
            .name = opts->settings[i].name,
            .kind = (enum pyrt_setting_kind)opts->settings[i].kind,
            .number = opts->settings[i].number,
            .text = opts->settings[i].text,
            .list = opts->settings[i].list,
            .count = opts->settings[i].count,
        };
    return settings;
}

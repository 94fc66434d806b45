/* Reads arbitrary bytes as a file of quirks and applies its rules.  Aborts when a promise is
 * broken: an error has a message, the same text gives the same key, and an effect renames
 * nothing twice. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/resolve/quirks.h"
#include "tests/fuzz/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *promise, const char *detail)
{
    fprintf(stderr, "%s: %s\n", promise, detail);
    abort();
}

static char *key_of(const struct exti_quirks *q)
{
    struct exti_error err = {.code = EXTI_OK};
    char *key;

    if (exti__quirks_key(q, &key, &err))
        broken("the rules have no key", err.message);
    return key;
}

static void check_effect(const struct exti_quirks *q, const char *path)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_image image = {.info = {.id = "liba.so.1", .build_id = "0123"}};
    struct exti_quirk_effect e;

    if (exti__quirks_apply(q, path, &image, &e, &err)) {
        if (!*err.message)
            broken("an error", "has no message");
        return;
    }
    for (size_t i = 0; i < e.rename_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(e.renames[i].from, e.renames[k].from) == 0)
                broken("renamed twice", e.renames[i].from);
    exti__quirk_effect_free(&e);
}

static void check_rules(struct exti_quirks *q)
{
    static const char *const paths[] = {"/usr/lib/libLLVM-16.so.1", "/a/liba.so.1", "/x.so"};
    struct exti_quirk_info info = {.size = sizeof info};

    for (size_t i = 0; i < exti_quirks_count(q); i++)
        if (exti_quirks_info(q, i, &info) || !info.id || !info.rule)
            broken("a rule", "has no description");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        check_effect(q, paths[i]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return fuzz_mutate_text(data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_quirks *q = exti__calloc(1, sizeof *q), *again = exti__calloc(1, sizeof *q);
    char *key, *other;

    if (!q || !again)
        exit(2);
    if (exti__quirks_read(q, "rules.json", (const char *)data, size, &err)) {
        if (!*err.message)
            broken("an error", "has no message");
    } else {
        check_rules(q);
        if (exti__quirks_read(again, "rules.json", (const char *)data, size, &err))
            broken("rules that were read cannot be read again", err.message);
        key = key_of(q);
        other = key_of(again);
        if (strcmp(key, other) != 0)
            broken("the same rules have two keys", key);
        exti__free(key);
        exti__free(other);
    }
    exti_quirks_free(q);
    exti_quirks_free(again);
    return 0;
}

/* Reads arbitrary bytes as JSON.  Aborts if a promise is broken: a text that is refused says
 * where, within it; one that is read and written is read again as the same, in each style. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/mem.h"
#include "tests/fuzz/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *promise, const char *text)
{
    fprintf(stderr, "%s: %s\n", promise, text);
    abort();
}

static struct exti_json *must_read(const char *text)
{
    struct exti_json *v = NULL;
    struct exti_error err = {.code = EXTI_OK};

    if (exti__json_read(text, strlen(text), "", &v, &err))
        broken(err.message, text);
    return v;
}

static char *must_write(const struct exti_json *v, enum exti_json_style style)
{
    char *text = NULL;

    if (exti__json_text(v, style, &text, NULL))
        broken("what was read is not written", "");
    return text;
}

/* `indented` with compact text written into it again. */
static void check_inserted(const char *compact, const char *indented)
{
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_INDENTED);
    char *text = NULL;

    exti__json_put_compact(&w, NULL, compact);
    if (exti__json_end(&w, &text, NULL) || strcmp(text, indented) != 0)
        broken("compact text is indented in another way", compact);
    exti__free(text);
}

/* Each object's members are found by their names. */
static void check_members(const struct exti_json *v)
{
    for (size_t i = 0; v->items && i < v->count; i++) {
        if (v->type == EXTI_JSON_OBJECT && exti__json_get(v, v->items[i].name) != &v->items[i])
            broken("a member is not found", v->items[i].name);
        check_members(&v->items[i]);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return fuzz_mutate_text(data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum exti_json_style styles[] = {EXTI_JSON_COMPACT, EXTI_JSON_INDENTED,
                                                  EXTI_JSON_SORTED};
    struct exti_json *v = NULL;
    struct exti_error err = {.code = EXTI_OK};
    char *compact, *indented;
    int rc = exti__json_read((const char *)data, size, "", &v, &err);

    if (rc && (rc != EXTI_E_FORMAT || err.offset > size || !*err.message))
        broken("a text is refused without a reason and a place in it", err.message);
    if (rc)
        return 0;
    check_members(v);
    compact = must_write(v, EXTI_JSON_COMPACT);
    indented = must_write(v, EXTI_JSON_INDENTED);
    check_inserted(compact, indented);
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        char *text = must_write(v, styles[i]), *again;
        struct exti_json *w = must_read(text);

        again = must_write(w, styles[i]);
        if (strcmp(text, again) != 0)
            broken("a second reading gives another text", text);
        exti__free(again);
        exti__free(text);
        exti__json_free(w);
    }
    exti__free(compact);
    exti__free(indented);
    exti__json_free(v);
    return 0;
}

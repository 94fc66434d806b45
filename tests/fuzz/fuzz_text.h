/* Mutation of JSON: whole values are exchanged, repeated or replaced, so that the text mostly stays
 * JSON and the checks behind the parser are reached. */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include "tests/fuzz/fuzz_mutate.h"

/* The end of the JSON value or key that starts at `at`: a string, a word, or a bracketed range. */
static inline size_t fuzz_value_end(const uint8_t *p, size_t n, size_t at)
{
    size_t depth = 0, i = at;

    if (p[at] == '"') {
        for (i++; i < n && p[i] != '"'; i++)
            i += p[i] == '\\';
        return i < n ? i + 1 : n;
    }
    for (; i < n; i++) {
        if (p[i] == '{' || p[i] == '[')
            depth++;
        else if (p[i] == '}' || p[i] == ']') {
            if (depth <= 1)
                return depth ? i + 1 : i;
            depth--;
        } else if (!depth && (p[i] == ',' || p[i] == ' ' || p[i] == '\n' || p[i] == ':'))
            return i;
    }
    return n;
}

/* A place where a value or key starts. */
static inline size_t fuzz_value_start(const uint8_t *p, size_t n, uint64_t *state)
{
    for (size_t i = fuzz_below(state, n), tries = 0; tries < n; i = (i + 1) % n, tries++)
        if (i && strchr(" :,[{\n", p[i - 1]) && !strchr(" :,]}\n", p[i]) && p[i])
            return i;
    return 0;
}

/* Puts `m` bytes in place of [at, end).  Returns the new size. */
static inline size_t fuzz_splice(uint8_t *data, size_t size, size_t room, size_t at, size_t end,
                                 const uint8_t *with, size_t m)
{
    if (size - (end - at) + m > room)
        return size;
    memmove(data + at + m, data + end, size - end);
    if (m)
        memcpy(data + at, with, m);
    return size - (end - at) + m;
}

static inline size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "0",
                                         "-1",
                                         "18446744073709551615",
                                         "1e999",
                                         "9223372036854775808",
                                         "\"\"",
                                         "\"/\"",
                                         "\"..\"",
                                         "\"a/../b\"",
                                         "\"*\"",
                                         "[]",
                                         "{}",
                                         "[[]]",
                                         "{\"a\":{}}",
                                         "\"\\u0000\"",
                                         "\"manifest.json\""};
    uint64_t state = seed + UINT64_C(0x9e3779b97f4a7c15);
    uint8_t other[512];
    const char *value = values[fuzz_below(&state, sizeof values / sizeof *values)];
    size_t at, end, from, m;

    if (size < 4 || !fuzz_below(&state, 3))
        return LLVMFuzzerMutate(data, size, room);
    at = fuzz_value_start(data, size, &state);
    end = fuzz_value_end(data, size, at);
    from = fuzz_value_start(data, size, &state);
    m = fuzz_value_end(data, size, from) - from;
    if (m > sizeof other)
        m = sizeof other;
    memcpy(other, data + from, m);
    switch (fuzz_below(&state, 4)) {
    case 0:
        return fuzz_splice(data, size, room, at, end, (const uint8_t *)value, strlen(value));
    case 1:
        return fuzz_splice(data, size, room, at, end, other, m);
    case 2: /* the value once more, which makes a longer list or a key that is there twice */
        return fuzz_splice(data, size, room, at, at, other, m);
    default:
        return fuzz_splice(data, size, room, at, end, NULL, 0);
    }
}

#endif

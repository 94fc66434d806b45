#include "loader/store/private_symbols.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/image/symbol_names.h"

static bool is_in_ranges(char c, const char *range)
{
    for (; *range; range += 2)
        if (c >= range[0] && c <= range[1])
            return true;
    return false;
}

bool exti__hash_preserving_name(const char *name, uint32_t *next, char *out)
{
    size_t n = strlen(name);

    for (size_t i = *next; i + 1 < n; i++) {
        char a = name[i], b = name[i + 1];
        int step = 0;

        /* Both results must be letters or digits, and a first digit would not be a C name. */
        if (is_in_ranges(a, "ayAY08") && is_in_ranges(b, "bz"))
            step = 1;
        else if (is_in_ranges(a, "bzBZ19") && is_in_ranges(b, "AY"))
            step = -1;
        if (!step || (i == 0 && is_in_ranges(a, "09")))
            continue;
        *next = (uint32_t)i + 1;
        memcpy(out, name, n + 1);
        out[i] = (char)(a + step);
        out[i + 1] = (char)(b - 33 * step);
        return true;
    }
    return false;
}

/* By ascending character. */
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static uint32_t gnu_hash(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = h * 33 + (uint8_t)*text;
    return h;
}

/* Writes `places` digits to `out`, and a NUL. */
static void put_digits(uint32_t value, int places, char *out)
{
    out[places] = 0;
    for (; places--; value /= sizeof digits - 1)
        out[places] = digits[value % (sizeof digits - 1)];
}

/* Whether one more character can give a hash `h` the remainder `want`. */
static bool may_reach(uint32_t h, uint32_t want, uint32_t buckets)
{
    const uint32_t step = (want + buckets - h * 33 % buckets) % buckets;

    return buckets <= 'z' || h * 33 > UINT32_MAX - 'z' || (step >= '0' && step <= 'z');
}

bool exti__bucket_preserving_name(const char *name, uint32_t buckets, uint32_t *next, char *out)
{
    enum { PLACES = EXTI_PRIVATE_SUFFIX - 3, BASE = sizeof digits - 1 };
    const size_t n = strlen(name);
    const uint32_t hash = gnu_hash(5381, name), most = BASE * BASE * BASE;
    char *const last = out + n + 2 + PLACES;

    if (!buckets || buckets > EXTI_PRIVATE_BUCKETS)
        buckets = 1;
    memcpy(out, name, n);
    memcpy(out + n, "__", 2);
    for (uint32_t i = *next / BASE; i < most; *next = ++i * BASE) {
        uint32_t h;

        put_digits(i, PLACES, out + n + 2);
        h = gnu_hash(hash, out + n);
        if (!may_reach(h, hash % buckets, buckets))
            continue;
        last[1] = 0;
        for (uint32_t k = *next % BASE; k < BASE; k++) {
            *last = digits[k];
            if ((h * 33 + (uint8_t)*last) % buckets != hash % buckets)
                continue;
            *next = i * BASE + k + 1;
            return true;
        }
    }
    return false;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_from(const void *a, const void *b)
{
    const struct exti_rename *x = a, *y = b;

    return strcmp(x->from, y->from);
}

/* Names in use: the image's own, and the private ones given so far, a tree of tsearch(3). */
struct taken {
    const char **names; /* owned; sorted, each once */
    bool *done;         /* owned; which of them have been looked at */
    size_t count;
    void *given;
};

/* Every symbol name of the image: no private name may be one of these.  False without memory. */
static bool take_names(struct taken *taken, const struct exti_image *api)
{
    const size_t count = api->info.symbol_count;

    taken->names = exti__realloc_array(NULL, count, sizeof *taken->names);
    taken->done = exti__calloc(count, sizeof *taken->done);
    if (!taken->names || !taken->done)
        return false;
    for (size_t i = 0; i < count; i++)
        taken->names[i] = api->symbols[i].name;
    qsort(taken->names, count, sizeof *taken->names, by_string);
    for (size_t i = 0; i < count; i++)
        if (!i || strcmp(taken->names[i], taken->names[taken->count - 1]) != 0)
            taken->names[taken->count++] = taken->names[i];
    return true;
}

/* Whether a name of the image is looked at for the first time: a symbol with several versions is
 * there several times, and gets one private name. */
static bool is_new(struct taken *taken, const char *name)
{
    const char **found = bsearch(&name, taken->names, taken->count, sizeof name, by_string);
    bool *done = &taken->done[found - taken->names];

    if (*done)
        return false;
    *done = true;
    return true;
}

/* Whether nothing else has the name in `out`, which is its symbol's from now on. */
static bool take_name(struct taken *taken, char *out, bool *nomem)
{
    const char *key = out, *const * node;

    if (bsearch(&key, taken->names, taken->count, sizeof key, by_string))
        return false;
    node = tsearch(out, &taken->given, exti__string_order);
    *nomem |= !node;
    return !node || *node == out;
}

/* A symbol without such a name would stay for the host to capture. */
static bool choose_name(const char *name, uint32_t buckets, struct taken *taken, char *out,
                        bool *nomem)
{
    uint32_t next = 0;

    while (exti__hash_preserving_name(name, &next, out))
        if (take_name(taken, out, nomem))
            return true;
    next = 0;
    while (exti__bucket_preserving_name(name, buckets, &next, out))
        if (take_name(taken, out, nomem))
            return true;
    return false;
}

static void leave_key(void *text)
{
    (void)text;
}

int exti__private_symbols_build(const struct exti_image *api, struct exti_private_symbols *out,
                                struct exti_error *err)
{
    struct exti_private_symbols map = {0};
    size_t bytes = 0, count = api->info.symbol_count;
    struct taken taken = {0};
    bool nomem = !take_names(&taken, api);
    char *p;

    for (size_t i = 0; i < count; i++)
        bytes += 2 * (strlen(api->symbols[i].name) + 1) + EXTI_PRIVATE_SUFFIX;
    map.renames = exti__calloc(count, sizeof *map.renames);
    p = map.text = exti__alloc(bytes);
    nomem |= !map.renames || !map.text;
    for (size_t i = 0; i < count && !nomem; i++) {
        const char *name = api->symbols[i].name;
        size_t n = strlen(name) + 1;

        if (!(api->symbols[i].flags & EXTI_SYM_EXPORT) || exti__is_file_symbol(name) ||
            !is_new(&taken, name) || !choose_name(name, api->gnu_buckets, &taken, p + n, &nomem))
            continue;
        memcpy(p, name, n);
        map.longer |= strlen(p + n) >= n;
        map.renames[map.count++] = (struct exti_rename){p, p + n};
        p += n + strlen(p + n) + 1;
    }
    exti__tree_free(&taken.given, exti__string_order, leave_key);
    exti__free(taken.names);
    exti__free(taken.done);
    if (nomem) {
        exti__private_symbols_free(&map);
        return exti__fail_nomem(err);
    }
    qsort(map.renames, map.count, sizeof *map.renames, by_from);
    *out = map;
    return 0;
}

void exti__private_symbols_free(struct exti_private_symbols *map)
{
    exti__free(map->renames);
    exti__free(map->text);
    *map = (struct exti_private_symbols){0};
}

bool exti__private_symbols_are(const struct exti_private_symbols *map, unsigned names)
{
    return names == EXTI_PRIVATE_NAMES || !map->longer;
}

const char *exti__private_symbol_find(const struct exti_private_symbols *map, const char *name)
{
    struct exti_rename key = {name, NULL}, *found;

    if (!map->count)
        return NULL;
    found = bsearch(&key, map->renames, map->count, sizeof *map->renames, by_from);
    return found ? found->to : NULL;
}

const char *exti__private_symbol_original(const struct exti_private_symbols *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->renames[i].to, name) == 0)
            return map->renames[i].from;
    return name;
}

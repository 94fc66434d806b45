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

bool exti__hash_preserving_name(const char *name, unsigned skip, char *out)
{
    size_t n = strlen(name);

    for (size_t i = 0; i + 1 < n; i++) {
        char a = name[i], b = name[i + 1];
        int step = 0;

        /* Both results must be letters or digits, and a first digit would not be a C name. */
        if (is_in_ranges(a, "ayAY08") && is_in_ranges(b, "bz"))
            step = 1;
        else if (is_in_ranges(a, "bzBZ19") && is_in_ranges(b, "AY"))
            step = -1;
        if (!step || (i == 0 && is_in_ranges(a, "09")) || skip-- > 0)
            continue;
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

bool exti__bucket_preserving_name(const char *name, uint32_t buckets, unsigned skip, char *out)
{
    enum { PLACES = EXTI_PRIVATE_SUFFIX - 3, BASE = sizeof digits - 1 };
    const size_t n = strlen(name);
    const uint32_t hash = gnu_hash(5381, name), most = BASE * BASE * BASE;
    char *const last = out + n + 2 + PLACES;

    buckets = buckets && buckets < UINT32_MAX / 2 ? buckets : 1;
    memcpy(out, name, n);
    memcpy(out + n, "__", 2);
    for (uint32_t i = 0; i < most; i++) {
        uint32_t h;

        put_digits(i, PLACES, out + n + 2);
        h = gnu_hash(hash, out + n);
        if (!may_reach(h, hash % buckets, buckets))
            continue;
        last[1] = 0;
        for (size_t k = 0; k < BASE; k++) {
            *last = digits[k];
            if ((h * 33 + (uint8_t)*last) % buckets == hash % buckets && skip-- == 0)
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

/* Every symbol name of the image, sorted: no private name may be one of these. */
static const char **sorted_names(const struct exti_image *api)
{
    const char **names = exti__realloc_array(NULL, api->info.symbol_count, sizeof *names);

    if (!names)
        return NULL;
    for (size_t i = 0; i < api->info.symbol_count; i++)
        names[i] = api->symbols[i].name;
    qsort(names, api->info.symbol_count, sizeof *names, by_string);
    return names;
}

/* Names in use: the image's own, sorted, and the private ones given so far, a tree of
 * tsearch(3). */
struct taken {
    const char **names;
    size_t count;
    void *given;
};

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
    for (unsigned skip = 0; exti__hash_preserving_name(name, skip, out); skip++)
        if (take_name(taken, out, nomem))
            return true;
    for (unsigned skip = 0; exti__bucket_preserving_name(name, buckets, skip, out); skip++)
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
    struct taken taken = {sorted_names(api), count, NULL};
    bool nomem = false;
    char *p;

    for (size_t i = 0; i < count; i++)
        bytes += 2 * (strlen(api->symbols[i].name) + 1) + EXTI_PRIVATE_SUFFIX;
    map.renames = exti__calloc(count, sizeof *map.renames);
    p = map.text = exti__alloc(bytes);
    nomem = !taken.names || !map.renames || !map.text;
    for (size_t i = 0; i < count && !nomem; i++) {
        const char *name = api->symbols[i].name;
        size_t n = strlen(name) + 1;

        if (!(api->symbols[i].flags & EXTI_SYM_EXPORT) || exti__is_file_symbol(name) ||
            !choose_name(name, api->gnu_buckets, &taken, p + n, &nomem))
            continue;
        memcpy(p, name, n);
        map.renames[map.count++] = (struct exti_rename){p, p + n};
        p += n + strlen(p + n) + 1;
    }
    exti__tree_free(&taken.given, exti__string_order, leave_key);
    exti__free(taken.names);
    if (nomem) {
        exti__private_symbols_free(&map);
        return exti__fail_nomem(err);
    }
    qsort(map.renames, map.count, sizeof *map.renames, by_from);
    /* A symbol with several versions has several entries but one name, so one private name too. */
    for (size_t i = 1; i < map.count; i++)
        if (strcmp(map.renames[i].from, map.renames[i - 1].from) == 0)
            map.renames[i].to = map.renames[i - 1].to;
    *out = map;
    return 0;
}

void exti__private_symbols_free(struct exti_private_symbols *map)
{
    exti__free(map->renames);
    exti__free(map->text);
    *map = (struct exti_private_symbols){0};
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

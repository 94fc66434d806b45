/* RFC 8536, The Time Zone Information Format. */
#include "loader/track/zone.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_read.h"

#define MOST_BYTES (1u << 20)
#define HEADER 44

/* What the header counts, in its order. */
struct counts {
    uint32_t ut, standard, leap, times, types, name_bytes;
};

static int parse_header(struct exti_span file, uint64_t at, int *version, struct counts *c,
                        struct exti_error *err)
{
    struct exti_span s;
    struct exti_cur cur;
    int rc = exti__span_sub(file, at, HEADER, "TZif header", &s, err);

    if (rc)
        return rc;
    if (memcmp(s.p, "TZif", 4) != 0)
        return exti__fail(err, EXTI_E_FORMAT, s.base, "TZif header: wrong magic");
    cur = exti__cur(s, true);
    exti__cur_skip(&cur, 4);
    *version = exti__cur_u8(&cur);
    exti__cur_skip(&cur, 15);
    c->ut = exti__cur_u32(&cur);
    c->standard = exti__cur_u32(&cur);
    c->leap = exti__cur_u32(&cur);
    c->times = exti__cur_u32(&cur);
    c->types = exti__cur_u32(&cur);
    c->name_bytes = exti__cur_u32(&cur);
    return exti__cur_end(&cur, "TZif header", err);
}

static uint64_t block_size(const struct counts *c, uint64_t time_size)
{
    return c->times * (time_size + 1) + (uint64_t)c->types * 6 + c->name_bytes +
           c->leap * (time_size + 4) + c->standard + c->ut;
}

static int parse_times(struct exti_span s, const struct counts *c, uint64_t time_size,
                       struct exti_zone *z, struct exti_error *err)
{
    struct exti_cur cur = exti__cur(s, true);

    for (size_t i = 0; i < z->count; i++)
        z->times[i] = time_size == 8 ? (int64_t)exti__cur_u64(&cur) : (int32_t)exti__cur_u32(&cur);
    for (size_t i = 0; i < z->count; i++)
        z->kinds[i] = exti__cur_u8(&cur);
    for (size_t i = 0; i < z->count; i++) {
        if (z->kinds[i] >= c->types)
            return exti__fail(err, EXTI_E_FORMAT, s.base, "transition %zu has type %d of %u", i,
                              z->kinds[i], c->types);
        if (i && z->times[i] <= z->times[i - 1])
            return exti__fail(err, EXTI_E_FORMAT, s.base, "transition %zu is out of order", i);
    }
    return exti__cur_end(&cur, "transitions", err);
}

static int parse_types(struct exti_span s, struct exti_span names, struct exti_zone *z,
                       struct exti_error *err)
{
    struct exti_cur cur = exti__cur(s, true);
    const char *name;
    int rc;

    for (size_t i = 0; i < z->type_count; i++) {
        struct exti_zone_type *t = &z->types[i];

        t->offset = (int32_t)exti__cur_u32(&cur);
        t->dst = exti__cur_u8(&cur) != 0;
        rc = exti__span_cstr(names, exti__cur_u8(&cur), "time zone designation", &name, err);
        if (rc)
            return rc;
        if (strlen(name) >= sizeof t->name || t->offset < -604800 || t->offset > 604800)
            return exti__fail(err, EXTI_E_FORMAT, s.base, "local time type %zu is out of range", i);
        memcpy(t->name, name, strlen(name) + 1);
    }
    return exti__cur_end(&cur, "local time types", err);
}

static int parse_block(struct exti_span file, uint64_t at, const struct counts *c,
                       uint64_t time_size, struct exti_zone *z, struct exti_error *err)
{
    struct exti_span block, times, types, names;
    uint64_t types_at = c->times * (time_size + 1);
    int rc = exti__span_sub(file, at, block_size(c, time_size), "TZif data block", &block, err);

    if (!rc)
        rc = exti__span_sub(block, 0, types_at, "transitions", &times, err);
    if (!rc)
        rc = exti__span_sub(block, types_at, (uint64_t)c->types * 6, "types", &types, err);
    if (!rc)
        rc = exti__span_sub(block, types_at + (uint64_t)c->types * 6, c->name_bytes, "names",
                            &names, err);
    if (rc)
        return rc;
    if (!c->types || c->types > 256)
        return exti__fail(err, EXTI_E_FORMAT, block.base, "%u local time types", c->types);
    if (c->leap)
        return exti__fail(err, EXTI_E_UNSUPPORTED, block.base, "leap seconds");
    z->count = c->times;
    z->type_count = c->types;
    z->times = exti__calloc(z->count, sizeof *z->times);
    z->kinds = exti__calloc(z->count, sizeof *z->kinds);
    z->types = exti__calloc(z->type_count, sizeof *z->types);
    if (!z->times || !z->kinds || !z->types)
        return exti__fail_nomem(err);
    rc = parse_times(times, c, time_size, z, err);
    return rc ? rc : parse_types(types, names, z, err);
}

/* "\n" a TZ string "\n". */
static void parse_footer(struct exti_span file, uint64_t at, struct exti_zone *z)
{
    char text[256];
    size_t n = 0;

    if (at >= file.n || file.p[at] != '\n')
        return;
    for (at++; at < file.n && file.p[at] != '\n' && n + 1 < sizeof text; at++)
        text[n++] = (char)file.p[at];
    text[n] = 0;
    if (at < file.n && file.p[at] == '\n')
        z->has_rule = exti__zone_rule_parse(text, &z->rule);
}

int exti__zone_parse(struct exti_span file, struct exti_zone *out, struct exti_error *err)
{
    struct exti_zone z = {0};
    struct counts c;
    uint64_t at = 0;
    int version, rc = parse_header(file, 0, &version, &c, err);

    /* Later versions repeat all with times of 64 bits. */
    if (!rc && version) {
        at = HEADER + block_size(&c, 4);
        rc = parse_header(file, at, &version, &c, err);
    }
    if (!rc)
        rc = parse_block(file, at + HEADER, &c, at ? 8 : 4, &z, err);
    if (!rc && at)
        parse_footer(file, at + HEADER + block_size(&c, 8), &z);
    if (rc)
        exti__zone_clear(&z);
    else
        *out = z;
    return rc;
}

int exti__zone_read(const char *path, struct exti_zone *out, struct exti_error *err)
{
    char *bytes;
    size_t n;
    int rc = exti__fs_read(path, MOST_BYTES, &bytes, &n, err);

    if (rc)
        return rc;
    rc = exti__zone_parse(exti__span(bytes, n), out, err);
    exti__free(bytes);
    return rc;
}

void exti__zone_clear(struct exti_zone *z)
{
    exti__free(z->times);
    exti__free(z->kinds);
    exti__free(z->types);
    *z = (struct exti_zone){0};
}

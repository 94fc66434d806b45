/* POSIX 8.3 Other Environment Variables, TZ. */
#include "loader/track/zone.h"

#include <string.h>

#define DAY_SECONDS 86400

/* ---- parsing ---- */

/* Whatever the locale is. */
static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_name(const char **at, char out[EXTI_ZONE_NAME])
{
    const bool quoted = **at == '<';
    const char *begin = *at + quoted, *end = begin;
    size_t n;

    while (is_letter(*end) || (quoted && (is_digit(*end) || *end == '+' || *end == '-')))
        end++;
    n = (size_t)(end - begin);
    if (n < 3 || n >= EXTI_ZONE_NAME || (quoted && *end != '>'))
        return false;
    memcpy(out, begin, n);
    out[n] = 0;
    *at = end + quoted;
    return true;
}

static bool parse_number(const char **at, int least, int most, int *out)
{
    int n = 0;

    if (!is_digit(**at))
        return false;
    while (is_digit(**at) && n <= most)
        n = n * 10 + *(*at)++ - '0';
    *out = n;
    return n >= least && n <= most;
}

/* [+-]hh[:mm[:ss]]; RFC 8536 allows hours of a week. */
static bool parse_time(const char **at, int hours_most, int32_t *out)
{
    const int sign = **at == '-' ? -1 : 1;
    int parts[3] = {0};

    if (**at == '-' || **at == '+')
        ++*at;
    for (int i = 0; i < 3; i++) {
        if (i && **at != ':')
            break;
        *at += i != 0;
        if (!parse_number(at, 0, i ? 59 : hours_most, &parts[i]))
            return false;
    }
    *out = sign * (parts[0] * 3600 + parts[1] * 60 + parts[2]);
    return true;
}

static bool parse_date(const char **at, struct exti_zone_day *d)
{
    switch (**at) {
    case 'M':
        ++*at;
        d->kind = EXTI_ZONE_WEEKDAY;
        return parse_number(at, 1, 12, &d->month) && *(*at)++ == '.' &&
               parse_number(at, 1, 5, &d->week) && *(*at)++ == '.' &&
               parse_number(at, 0, 6, &d->day);
    case 'J':
        ++*at;
        d->kind = EXTI_ZONE_JULIAN;
        return parse_number(at, 1, 365, &d->day);
    default:
        d->kind = EXTI_ZONE_DAY;
        return parse_number(at, 0, 365, &d->day);
    }
}

static bool parse_day(const char **at, struct exti_zone_day *d)
{
    if (*(*at)++ != ',' || !parse_date(at, d))
        return false;
    d->time = 2 * 3600;
    if (**at != '/')
        return true;
    ++*at;
    return parse_time(at, 167, &d->time);
}

static bool parse_dst(const char *at, struct exti_zone_rule *r)
{
    struct exti_zone_type *dst = &r->types[1];
    int32_t west = -r->types[0].offset - 3600;

    if (!parse_name(&at, dst->name))
        return false;
    if (*at && *at != ',' && !parse_time(&at, 24, &west))
        return false;
    dst->offset = -west;
    dst->dst = true;
    r->has_dst = true;
    /* POSIX leaves the days open; these are the GNU C library's. */
    if (!*at)
        at = ",M3.2.0,M11.1.0";
    return parse_day(&at, &r->begin) && parse_day(&at, &r->end) && !*at;
}

bool exti__zone_rule_parse(const char *text, struct exti_zone_rule *out)
{
    struct exti_zone_rule r = {.has_dst = false};
    const char *at = text;
    int32_t west = 0;
    bool ok = parse_name(&at, r.types[0].name) && parse_time(&at, 24, &west);

    r.types[0].offset = ok ? -west : 0;
    r.types[1] = r.types[0];
    if (ok && *at)
        ok = parse_dst(at, &r);
    if (!ok) {
        r.types[0].offset = 0;
        r.types[1] = (struct exti_zone_type){.offset = 0};
        r.has_dst = false;
    }
    *out = r;
    return ok;
}

/* ---- a moment ---- */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days from 1970-01-01 to the first of the year. */
static int64_t days_before(int64_t year)
{
    const int64_t y = year - 1;

    return 365 * (year - 1970) + floor_div(y, 4) - floor_div(y, 100) + floor_div(y, 400) - 477;
}

static int64_t year_of(int64_t at)
{
    const int64_t day = floor_div(at, DAY_SECONDS);
    int64_t year = 1970 + floor_div(day * 400, 146097);

    while (days_before(year) > day)
        year--;
    while (days_before(year + 1) <= day)
        year++;
    return year;
}

static const int month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

/* Days from the year's first to that of the change. */
static int64_t day_in_year(const struct exti_zone_day *d, int64_t year)
{
    const bool leap = is_leap(year);
    int64_t first = 0, weekday, day;
    int length;

    if (d->kind == EXTI_ZONE_DAY)
        return d->day;
    if (d->kind == EXTI_ZONE_JULIAN)
        return d->day - 1 + (leap && d->day >= 60);
    for (int m = 0; m < d->month - 1; m++)
        first += month_days[m] + (m == 1 && leap);
    length = month_days[d->month - 1] + (d->month == 2 && leap);
    /* 1970-01-01 was a Thursday. */
    weekday = (days_before(year) + first + 4) % 7;
    day = (d->day - (weekday + 7) % 7 + 7) % 7 + 7 * (d->week - 1);
    while (day >= length)
        day -= 7;
    return first + day;
}

static int64_t change_at(const struct exti_zone_day *d, int64_t year, int32_t offset)
{
    return (days_before(year) + day_in_year(d, year)) * DAY_SECONDS + d->time - offset;
}

const struct exti_zone_type *exti__zone_rule_at(const struct exti_zone_rule *r, int64_t at)
{
    int64_t year, begin, end;
    bool dst;

    /* Beyond, no calendar has an answer: as years of int go. */
    if (!r->has_dst || at > INT64_C(67768036191694799) || at < -INT64_C(67768040609740800))
        return &r->types[0];
    year = year_of(at);
    begin = change_at(&r->begin, year, r->types[0].offset);
    end = change_at(&r->end, year, r->types[1].offset);
    dst = begin > end ? at < end || at >= begin : at >= begin && at < end;
    return &r->types[dst];
}

#define _GNU_SOURCE /* wcsftime_l */
#include "loader/interpose/time_calls.h"

#include <errno.h>
#include <locale.h>
#include <time.h>
#include <wchar.h>

#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

#ifdef __GLIBC__

/* The caller's surroundings if they have a time zone, else NULL. */
static struct exti_surroundings *with_times(uintptr_t call)
{
    struct exti_surroundings *s = exti__surroundings_at(call);

    return s && s->times ? s : NULL;
}

#define OWN with_times((uintptr_t)__builtin_return_address(0))

static const struct exti_zone *zone_of(const struct exti_surroundings *s, bool afresh)
{
    return exti__times_zone(s->times, s->environment, afresh);
}

/* ---- from a moment ---- */

static struct tm *show_time(const struct exti_zone *z, time_t at, struct tm *out)
{
    const struct exti_zone_type *t = exti__zone_at(z, at);
    time_t local;

    if (__builtin_add_overflow(at, (time_t)t->offset, &local)) {
        errno = EOVERFLOW;
        return NULL;
    }
    if (!gmtime_r(&local, out))
        return NULL;
    out->tm_isdst = t->dst;
    out->tm_gmtoff = t->offset;
    out->tm_zone = t->name;
    return out;
}

static void interposed_tzset(void)
{
    struct exti_surroundings *s = OWN;

    if (s)
        zone_of(s, true);
    else
        tzset();
}

static struct tm *interposed_localtime(const time_t *at)
{
    struct exti_surroundings *s = OWN;

    return s ? show_time(zone_of(s, true), *at, &s->times->shown) : localtime(at);
}

static struct tm *interposed_localtime_r(const time_t *at, struct tm *out)
{
    struct exti_surroundings *s = OWN;

    return s ? show_time(zone_of(s, false), *at, out) : localtime_r(at, out);
}

static char *interposed_ctime(const time_t *at)
{
    struct exti_surroundings *s = OWN;

    if (!s)
        return ctime(at);
    return show_time(zone_of(s, true), *at, &s->times->shown)
               ? asctime_r(&s->times->shown, s->times->text)
               : NULL;
}

static char *interposed_ctime_r(const time_t *at, char *out)
{
    struct exti_surroundings *s = OWN;
    struct tm tm;

    if (!s)
        return ctime_r(at, out);
    return show_time(zone_of(s, false), *at, &tm) ? asctime_r(&tm, out) : NULL;
}

/* ---- to a moment ---- */

static time_t interposed_mktime(struct tm *tm)
{
    struct exti_surroundings *s = OWN;
    const int before = errno;
    const struct exti_zone *z;
    struct tm parts = *tm;
    time_t local, at;

    if (!s)
        return mktime(tm);
    z = zone_of(s, true);
    errno = 0;
    local = timegm(&parts);
    if (local == -1 && errno == EOVERFLOW)
        return -1;
    errno = before;
    at = exti__zone_moment(z, local, tm->tm_isdst);
    return show_time(z, at, tm) ? at : -1;
}

/* ---- as text ---- */

/* The format is the caller's. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The C library takes the name of the time from its own zone where the caller gives none. */
static const struct tm *with_name(const struct exti_surroundings *s, const struct tm *tm,
                                  struct tm *own)
{
    if (!s || tm->tm_isdst < 0 || (tm->tm_zone && *tm->tm_zone))
        return tm;
    zone_of(s, true);
    *own = *tm;
    own->tm_zone = s->times->names[tm->tm_isdst > 0];
    return own;
}

static size_t interposed_strftime(char *out, size_t size, const char *format, const struct tm *tm)
{
    struct tm own;

    return strftime(out, size, format, with_name(OWN, tm, &own));
}

__attribute__((format(strftime, 3, 0))) static size_t interposed_strftime_l(char *out, size_t size,
                                                                            const char *format,
                                                                            const struct tm *tm,
                                                                            locale_t locale)
{
    struct tm own;

    return strftime_l(out, size, format, with_name(OWN, tm, &own), locale);
}

static size_t interposed_wcsftime(wchar_t *out, size_t size, const wchar_t *format,
                                  const struct tm *tm)
{
    struct tm own;

    return wcsftime(out, size, format, with_name(OWN, tm, &own));
}

static size_t interposed_wcsftime_l(wchar_t *out, size_t size, const wchar_t *format,
                                    const struct tm *tm, locale_t locale)
{
    struct tm own;

    return wcsftime_l(out, size, format, with_name(OWN, tm, &own), locale);
}

/* ---- looking them up ---- */

void *exti__time_call(const struct exti_ctx *ctx, const char *symbol)
{
    struct exti_times *t = ctx->surroundings ? ctx->surroundings->times : NULL;
    const struct exti_redirect calls[] = {
        {"tzset", EXTI_ADDRESS(interposed_tzset)},
        {"localtime", EXTI_ADDRESS(interposed_localtime)},
        {"localtime_r", EXTI_ADDRESS(interposed_localtime_r)},
        {"ctime", EXTI_ADDRESS(interposed_ctime)},
        {"ctime_r", EXTI_ADDRESS(interposed_ctime_r)},
        {"mktime", EXTI_ADDRESS(interposed_mktime)},
        {"timelocal", EXTI_ADDRESS(interposed_mktime)},
        {"strftime", EXTI_ADDRESS(interposed_strftime)},
        {"strftime_l", EXTI_ADDRESS(interposed_strftime_l)},
        {"__strftime_l", EXTI_ADDRESS(interposed_strftime_l)},
        {"wcsftime", EXTI_ADDRESS(interposed_wcsftime)},
        {"wcsftime_l", EXTI_ADDRESS(interposed_wcsftime_l)},
        {"__wcsftime_l", EXTI_ADDRESS(interposed_wcsftime_l)},
        {"tzname", t ? t->names : NULL},
        {"__tzname", t ? t->names : NULL},
        {"timezone", t ? &t->west : NULL},
        {"__timezone", t ? &t->west : NULL},
        {"daylight", t ? &t->has_dst : NULL},
        {"__daylight", t ? &t->has_dst : NULL},
    };

    return t ? exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol) : NULL;
}

#else

void *exti__time_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif

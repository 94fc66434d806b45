/* Time zones, held against the C library's in this process. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/os/fs_read.h"
#include "loader/track/zone.h"

#define FOLDER "/usr/share/zoneinfo"

static unsigned long checked;

static int64_t random_moment(void)
{
    /* 1900 to 2100. */
    return -INT64_C(2208988800) + (int64_t)(drand48() * 6311433600.0);
}

static void use_zone(const char *tz)
{
    setenv("TZ", tz, 1);
    tzset();
}

static void assert_same_type(const char *tz, const struct exti_zone_type *t, time_t at)
{
    struct tm tm;

    assert_non_null(localtime_r(&at, &tm));
    if (tm.tm_gmtoff == t->offset && tm.tm_isdst == t->dst && strcmp(tm.tm_zone, t->name) == 0)
        return;
    fail_msg("%s at %lld: %d %d %s, and libc's %ld %d %s", tz, (long long)at, (int)t->offset,
             t->dst, t->name, tm.tm_gmtoff, tm.tm_isdst, tm.tm_zone);
}

static time_t libc_moment(struct tm tm, int dst)
{
    tm.tm_isdst = dst;
    return mktime(&tm);
}

/* Of such a time, libc gives the moment by what it was asked before. */
static bool is_shown_twice(const struct exti_zone *z, int64_t local, int64_t at)
{
    for (size_t i = 0; i < z->type_count + 2; i++) {
        const struct exti_zone_type *t = i < 2 ? &z->rule.types[i] : &z->types[i - 2];
        const int64_t other = local - t->offset;

        if (other != at && exti__zone_at(z, other)->offset == t->offset)
            return true;
    }
    return false;
}

static void assert_same_moments(const char *tz, const struct exti_zone *z, time_t at)
{
    struct tm tm, copy;
    int64_t local;

    localtime_r(&at, &tm);
    copy = tm;
    local = timegm(&copy);
    if (is_shown_twice(z, local, at))
        return;
    for (int dst = -1; dst < 2; dst++)
        if (exti__zone_moment(z, local, dst) != libc_moment(tm, dst))
            fail_msg("%s at %lld, tm_isdst %d: %lld, and libc's %lld", tz, (long long)at, dst,
                     (long long)exti__zone_moment(z, local, dst), (long long)libc_moment(tm, dst));
    checked++;
}

static void check_file(const char *tz)
{
    const struct exti_zone_type *last[2];
    struct exti_zone z;

    assert_int_equal(exti__zone_read(tz, &z, NULL), 0);
    use_zone("UTC0");
    use_zone(tz);
    exti__zone_last(&z, last);
    assert_string_equal(last[0]->name, tzname[0]);
    assert_string_equal(last[1]->name, tzname[1]);
    assert_int_equal(-last[0]->offset, timezone);
    assert_int_equal(last[1]->dst, daylight);
    for (size_t i = 0; i < z.count; i++)
        for (int d = -1; d <= 1; d++) {
            assert_same_type(tz, exti__zone_at(&z, z.times[i] + d), z.times[i] + d);
            assert_same_moments(tz, &z, z.times[i] + d);
        }
    for (int i = 0; i < 100; i++) {
        const int64_t at = random_moment();

        assert_same_type(tz, exti__zone_at(&z, at), at);
        assert_same_moments(tz, &z, at);
    }
    exti__zone_clear(&z);
}

static size_t files;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char magic[4] = "";
    FILE *f;

    (void)st, (void)ftw;
    if (type != FTW_F || strncmp(path, FOLDER "/right/", sizeof FOLDER "/right/" - 1) == 0)
        return 0;
    f = fopen(path, "rb");
    if (fread(magic, 1, 4, f) == 4 && memcmp(magic, "TZif", 4) == 0) {
        check_file(path);
        files++;
    }
    fclose(f);
    return 0;
}

static void all_zones_are_the_c_librarys(void **state)
{
    (void)state;
    assert_int_equal(nftw(FOLDER, visit, 16, FTW_PHYS), 0);
    if (!files)
        skip();
    print_message("%zu files, %lu moments\n", files, checked);
    assert_true(files > 300 && checked > 30000);
}

static void strings_are_the_c_librarys(void **state)
{
    static const char *const texts[] = {"UTC0",
                                        "EST+5EDT,M3.2.0,M11.1.0",
                                        "CET-1CEST,M3.5.0,M10.5.0/3",
                                        "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
                                        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
                                        "NZST-12NZDT,M9.5.0,M4.1.0/3",
                                        "IST-2IDT,M3.4.4/26,M10.5.0",
                                        "AAA1:02:03BBB0:30,J60/0,J300/24:30:15",
                                        "AAA-14BBB,59,364/167",
                                        "XXX24",
                                        "abc-5"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct exti_zone z = {.has_rule = true};

        assert_true(exti__zone_rule_parse(texts[i], &z.rule));
        use_zone(texts[i]);
        for (int n = 0; n < 3000; n++) {
            const int64_t at = random_moment();

            /* For years before 1970 libc takes the days of 1970. */
            if (at < 366 * 86400)
                continue;
            assert_same_type(texts[i], exti__zone_at(&z, at), at);
            assert_same_moments(texts[i], &z, at);
        }
    }
}

static void what_is_no_string_is_utc(void **state)
{
    static const char *const texts[] = {"",
                                        "A",
                                        "AB5",
                                        "EST",
                                        "EST25",
                                        "EST5:60",
                                        "EST5EDT,",
                                        "<EST5",
                                        "EST5E",
                                        "EST5EDT,M1.1.1",
                                        "EST5EDT,M13.1.1,M1.1.1",
                                        "EST5EDT,J0,J1",
                                        "EST5EDT,366,1",
                                        "EST5EDT,M3.2.0/168,M11.1.0",
                                        "EST5EDT,M3.2.0,M11.1.0x",
                                        "99999999999999999999",
                                        "EST99999999999999999999"};
    struct exti_zone_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(exti__zone_rule_parse(texts[i], &r));
        assert_int_equal(exti__zone_rule_at(&r, 1000000000)->offset, 0);
        assert_false(exti__zone_rule_at(&r, 1000000000)->dst);
    }
}

/* A time that clocks pass over is answered as libc does. */
static void times_in_a_gap_are_the_c_librarys(void **state)
{
    static const char *const zones[] = {"EST5EDT,M3.2.0,M11.1.0", "CET-1CEST,M3.5.0,M10.5.0/3"};
    struct tm tm = {.tm_mday = 10, .tm_mon = 2, .tm_year = 124, .tm_hour = 2, .tm_min = 30};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct exti_zone z = {.has_rule = true};
        struct tm copy;

        tm.tm_mday = i ? 31 : 10;
        assert_true(exti__zone_rule_parse(zones[i], &z.rule));
        use_zone(zones[i]);
        for (int dst = -1; dst < 2; dst++) {
            copy = tm;
            assert_int_equal(exti__zone_moment(&z, timegm(&copy), dst), libc_moment(tm, dst));
        }
    }
}

static void far_moments_have_an_answer(void **state)
{
    struct exti_zone z = {.has_rule = true};

    (void)state;
    assert_true(exti__zone_rule_parse("CET-1CEST", &z.rule));
    assert_int_equal(exti__zone_at(&z, INT64_MAX)->offset, 3600);
    assert_int_equal(exti__zone_at(&z, INT64_MIN)->offset, 3600);
}

static int parse_bytes(const char *bytes, size_t n)
{
    const struct exti_zone_type *last[2];
    char *exact = exti__alloc(n);
    struct exti_zone z;
    int rc;

    /* Of its very size, so that a read past the end is seen. */
    memcpy(exact, bytes, n);
    rc = exti__zone_parse(exti__span(exact, n), &z, NULL);
    if (!rc) {
        for (int i = 0; i < 8; i++)
            assert_non_null(exti__zone_at(&z, random_moment()));
        exti__zone_last(&z, last);
        exti__zone_moment(&z, random_moment(), 1);
        exti__zone_clear(&z);
    }
    exti__free(exact);
    return rc;
}

static void broken_files_are_refused(void **state)
{
    char *bytes, *changed;
    size_t n;

    (void)state;
    if (exti__fs_read(FOLDER "/Europe/London", 1 << 20, &bytes, &n, NULL))
        skip();
    assert_int_equal(parse_bytes(bytes, n), 0);
    changed = exti__alloc(n);
    /* The footer may be missing. */
    for (size_t i = 0; i < n - 32; i++)
        assert_int_equal(parse_bytes(bytes, i), EXTI_E_FORMAT);
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, bytes, n);
        for (int k = 0; k < 1 + i % 3; k++)
            changed[(size_t)(drand48() * (double)(i % 2 ? n : 200))] = (char)(drand48() * 256);
        parse_bytes(changed, n);
    }
    exti__free(changed);
    exti__free(bytes);
}

/* As files of "right" zones have them, which not every Debian has. */
static void leap_seconds_are_refused(void **state)
{
    /* 44 bytes of header; a type and its name; one leap second. */
    unsigned char file[44 + 6 + 4 + 8] = "TZif";
    struct exti_error err = {0};
    struct exti_zone z;

    (void)state;
    file[39] = 1; /* type */
    file[43] = 4; /* bytes of names */
    memcpy(file + 50, "UTC", 4);
    assert_int_equal(exti__zone_parse(exti__span(file, 54), &z, &err), EXTI_OK);
    exti__zone_clear(&z);
    file[31] = 1;
    assert_int_equal(exti__zone_parse(exti__span(file, sizeof file), &z, &err), EXTI_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "leap seconds"));
}

static void without_memory_nothing_is_read(void **state)
{
    struct exti_zone z;
    int rc = EXTI_E_NOMEM;

    (void)state;
    for (long n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__zone_read(FOLDER "/Europe/London", &z, NULL);
        exti__mem_fail_after(-1);
        if (rc == EXTI_E_IO)
            skip();
        assert_true(!rc || rc == EXTI_E_NOMEM);
    }
    exti__zone_clear(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_zones_are_the_c_librarys),
        cmocka_unit_test(strings_are_the_c_librarys),
        cmocka_unit_test(what_is_no_string_is_utc),
        cmocka_unit_test(times_in_a_gap_are_the_c_librarys),
        cmocka_unit_test(far_moments_have_an_answer),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(leap_seconds_are_refused),
        cmocka_unit_test(without_memory_nothing_is_read),
    };

    return cmocka_run_group_tests_name("track/zone", tests, NULL, NULL);
}

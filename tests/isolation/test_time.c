/* The time zones of contexts, held against that of a plain process with the same TZ. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <time.h>

#include "tests/isolation/build.h"

/* Tells in `out` all that depends on the zone. */
static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <time.h>\n"
    "#include <wchar.h>\n"
    "int put(const char *v) { int r = v ? setenv(\"TZ\", v, 1) : unsetenv(\"TZ\"); return r; }\n"
    "void reset(void) { tzset(); }\n"
    "void show(char *out, size_t size)\n"
    "{\n"
    "    time_t at = 1700000000, summer = 1720000000, made[3];\n"
    "    char text[2][64], line[32], *shown;\n"
    "    wchar_t wide[64];\n"
    "    struct tm tm, unnamed;\n"
    "    tzset();\n"
    "    snprintf(out, size, \"%s|%s %s %ld %d|\", shown, tzname[0], tzname[1], timezone, "
    "daylight);\n"
    "    localtime_r(&summer, &tm);\n"
    "    unnamed = tm;\n"
    "    unnamed.tm_zone = NULL;\n"
    "    strftime(text[0], 64, \"%F %T %Z %z\", &tm);\n"
    "    strftime(text[1], 64, \"%F %T %Z %z\", &unnamed);\n"
    "    wcsftime(wide, 64, L\"%Z\", &unnamed);\n"
    "    for (int i = 0; i < 3; i++) { unnamed = tm; unnamed.tm_isdst = i - 1; made[i] = "
    "mktime(&unnamed); }\n"
    "    tm = *localtime(&at);\n"
    "    snprintf(out + strlen(out), size - strlen(out), \"%s|%s|%ls|%ld %ld %ld|%d %d %ld "
    "%s|%s\", text[0],\n"
    "             text[1], wide, made[0], made[1], made[2], tm.tm_hour, tm.tm_isdst, "
    "tm.tm_gmtoff,\n"
    "             tm.tm_zone, ctime_r(&summer, line));\n"
    "}\n"
    "int later(void)\n"
    "{ time_t at = 1700000000; struct tm tm; localtime_r(&at, &tm); return tm.tm_hour; }\n";

struct clock {
    struct exti_ctx *ctx;
    int (*put)(const char *tz); /* NULL: TZ is not set */
    void (*reset)(void);
    void (*show)(char *out, size_t size);
    int (*later)(void);
};

static struct clock in_context(uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct clock c = {0};
    struct exti_module *m;

    opts.flags = flags;
    c.ctx = iso_open_opts(&opts);
    m = iso_load(c.ctx, in_tmp("clock.so"));
    *(void **)&c.put = iso_sym(m, "put");
    *(void **)&c.reset = iso_sym(m, "reset");
    *(void **)&c.show = iso_sym(m, "show");
    *(void **)&c.later = iso_sym(m, "later");
    return c;
}

/* What the original tells in a process of its own. */
static const char *by_itself(const char *tz)
{
    static char told[1024];
    FILE *f;
    size_t n;

    if (!file_exists(in_tmp("clock"))) {
        iso_write_text(in_tmp("main.c"),
                       "#include <stdio.h>\nvoid show(char *out, size_t size);\n"
                       "int main(void)\n"
                       "{ char t[1024]; show(t, sizeof t); fputs(t, stdout); return 0; }\n");
        want(system(iso_text("gcc -w -o '%s' '%s' '%s'", in_tmp("clock"), in_tmp("main.c"),
                             in_tmp("clock.so"))) == 0);
    }
    f = popen(iso_text("env -u TZ %s%s%s '%s'", tz ? "TZ='" : "", tz ? tz : "", tz ? "'" : "",
                       in_tmp("clock")),
              "r");
    want(f);
    n = fread(told, 1, sizeof told - 1, f);
    told[n] = 0;
    want(pclose(f) == 0 && n);
    return told;
}

static void want_as_by_itself(const struct clock *c, const char *tz)
{
    char text[1024];

    c->show(text, sizeof text);
    want_text(text, by_itself(tz));
}

static const char *const zones[] = {"Europe/Berlin",
                                    "America/New_York",
                                    ":Asia/Kolkata",
                                    "Australia/Lord_Howe",
                                    "CET-1CEST,M3.5.0,M10.5.0/3",
                                    "<-03>3",
                                    "UTC",
                                    "",
                                    ":",
                                    "Nowhere",
                                    "Europe/Nowhere",
                                    NULL};
#define ZONES (sizeof zones / sizeof *zones)

ISO_CASE(each_context_has_a_time_zone_of_its_own)
{
    struct clock clocks[ZONES];
    time_t at = 1700000000;
    struct tm before, after;

    iso_build(source, "clock.so", "-w");
    setenv("TZ", "Asia/Tokyo", 1);
    localtime_r(&at, &before);
    for (size_t i = 0; i < ZONES; i++) {
        clocks[i] = in_context(0);
        want_as_by_itself(&clocks[i], "Asia/Tokyo");
        want_int(clocks[i].put(zones[i]), 0);
    }
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < ZONES; i++)
            want_as_by_itself(&clocks[i], zones[i]);
    tzset();
    localtime_r(&at, &after);
    want_int(after.tm_hour, before.tm_hour);
    want_text(tzname[0], "JST");
    iso_prove_clean(clocks[0].ctx, 2);
    for (size_t i = 0; i < ZONES; i++)
        iso_close_ctx(clocks[i].ctx);
}

/* localtime_r need not look at TZ again, and glibc's does not. */
ISO_CASE(a_new_tz_counts_from_tzset_on)
{
    struct clock c;

    iso_build(source, "clock.so", "-w");
    setenv("TZ", "UTC0", 1);
    c = in_context(0);
    c.reset();
    want_int(c.later(), 22);
    want_int(c.put("AAA-1"), 0);
    want_int(c.later(), 22);
    c.reset();
    want_int(c.later(), 23);
    iso_close_ctx(c.ctx);
}

ISO_CASE(a_context_can_share_the_processs_zone)
{
    struct clock c;

    iso_build(source, "clock.so", "-w");
    setenv("TZ", "AAA-3", 1);
    c = in_context(EXTI_CTX_PROCESS_ENVIRONMENT);
    want_int(c.put("BBB-2"), 0);
    c.reset();
    want_text(tzname[0], "BBB");
    iso_close_ctx(c.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_context_has_a_time_zone_of_its_own),
                                       cmocka_unit_test(a_new_tz_counts_from_tzset_on),
                                       cmocka_unit_test(a_context_can_share_the_processs_zone)};

    return cmocka_run_group_tests_name("isolation/time", tests, NULL, NULL);
}

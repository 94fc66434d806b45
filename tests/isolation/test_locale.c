/* The locales of contexts, held against those of plain processes. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <locale.h>
#include <pthread.h>

#include "tests/isolation/build.h"

/* Tells in `out` all that depends on the current locale. */
#define SHOW "void show(char *out, size_t size)"
static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <ctype.h>\n"
    "#include <langinfo.h>\n"
    "#include <locale.h>\n"
    "#include <monetary.h>\n"
    "#include <pthread.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <time.h>\n"
    "#include <wchar.h>\n"
    "#include <wctype.h>\n"
    "char *set(int c, const char *n) { char *r = setlocale(c, n); return r; }\n"
    "int put(const char *n, const char *v) { int r = setenv(n, v, 1); return r; }\n" SHOW "\n"
    "{\n"
    "    struct tm tm = {.tm_mday = 1, .tm_mon = 2, .tm_year = 100, .tm_wday = 3};\n"
    "    char day[64] = \"\", money[64] = \"\";\n"
    "    struct lconv *c = localeconv();\n"
    "    wchar_t wide[8];\n"
    "    strftime(day, sizeof day, \"%A %B %x\", &tm);\n"
    "    strfmon(money, sizeof money, \"%n\", 1234.5);\n"
    "    snprintf(out, size, \"%s|%.2f|%g|%s|%s|%s|%s|%s|%s|%zu|%d|%lc|%d|%d|%d|%d\",\n"
    "             setlocale(LC_ALL, NULL), 1.5, strtod(\"2,5\", NULL), c->decimal_point,\n"
    "             c->thousands_sep, c->int_curr_symbol, day, money, nl_langinfo(CODESET),\n"
    "             (size_t)MB_CUR_MAX, (int)mbstowcs(wide, \"\\303\\244\", 8), 'x',\n"
    "             (int)towupper('i'), !!isalpha(0xe4), toupper(0xe4) & 255,\n"
    "             strcoll(\"a\", \"B\") < 0);\n"
    "}\n"
    "struct work { char *out; size_t size; };\n"
    "static void *work(void *p) { struct work *w = p; show(w->out, w->size); return 0; }\n"
    "int in_thread(char *out, size_t size)\n"
    "{\n"
    "    struct work w = {out, size};\n"
    "    pthread_t t;\n"
    "    return pthread_create(&t, 0, work, &w) || pthread_join(t, 0);\n"
    "}\n"
    "static pthread_barrier_t step;\n"
    "static void *wait(void *p)\n"
    "{ pthread_barrier_wait(&step); pthread_barrier_wait(&step); return work(p); }\n"
    "int in_older_thread(const char *name, char *out, size_t size)\n"
    "{\n"
    "    struct work w = {out, size};\n"
    "    pthread_t t;\n"
    "    pthread_barrier_init(&step, 0, 2);\n"
    "    if (pthread_create(&t, 0, wait, &w)) return 1;\n"
    "    pthread_barrier_wait(&step);\n"
    "    setlocale(LC_NUMERIC, name);\n"
    "    pthread_barrier_wait(&step);\n"
    "    return pthread_join(t, 0);\n"
    "}\n"
    "int uses(const char *name)\n"
    "{\n"
    "    locale_t l = newlocale(LC_ALL_MASK, name, 0), was = uselocale(0), d;\n"
    "    char text[8];\n"
    "    int bad = !l || was != LC_GLOBAL_LOCALE || uselocale(l) != was || uselocale(0) != l;\n"
    "    snprintf(text, sizeof text, \"%.1f\", 1.5);\n"
    "    bad = bad || strcmp(text, \"1,5\") || uselocale(LC_GLOBAL_LOCALE) != l;\n"
    "    d = duplocale(LC_GLOBAL_LOCALE);\n"
    "    bad = bad || !d || uselocale(d) != was || uselocale(was) != d;\n"
    "    freelocale(l);\n"
    "    freelocale(d);\n"
    "    return bad;\n"
    "}\n";

struct speaker {
    struct exti_ctx *ctx;
    char *(*set)(int category, const char *name);
    int (*put)(const char *name, const char *value);
    void (*show)(char *out, size_t size);
    int (*in_thread)(char *out, size_t size);
    int (*in_older_thread)(const char *name, char *out, size_t size);
    int (*uses)(const char *name);
};

static void build(void)
{
    static const char *const made[] = {"de_DE.UTF-8", "tr_TR.UTF-8", "fr_FR.ISO-8859-1"};

    for (size_t i = 0; i < 3; i++)
        want(system(iso_text("localedef -i %.5s -f %s '%s'", made[i], made[i] + 6,
                             in_tmp(made[i]))) == 0);
    setenv("LOCPATH", iso_tmp, 1);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"LC_ALL", "LANG", "LC_NUMERIC"};

        unsetenv(names[i]);
    }
    iso_build(source, "speak.so", "-w -lpthread");
}

static struct speaker speaker(uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct speaker s = {0};
    struct exti_module *m;

    opts.flags = flags;
    s.ctx = iso_open_opts(&opts);
    m = iso_load(s.ctx, in_tmp("speak.so"));
    *(void **)&s.set = iso_sym(m, "set");
    *(void **)&s.put = iso_sym(m, "put");
    *(void **)&s.show = iso_sym(m, "show");
    *(void **)&s.in_thread = iso_sym(m, "in_thread");
    *(void **)&s.in_older_thread = iso_sym(m, "in_older_thread");
    *(void **)&s.uses = iso_sym(m, "uses");
    return s;
}

/* What the original tells in a process of its own after setlocale(category, name). */
static const char *by_itself(int category, const char *name)
{
    static char told[8][1024];
    static unsigned next;
    char *out = told[next++ % 8];
    FILE *f;

    iso_write_text(in_tmp("main.c"),
                   "#include <stdio.h>\n#include <stdlib.h>\n#include <locale.h>\n" SHOW ";\n"
                   "int main(int n, char **v)\n"
                   "{ char t[1024]; if (n != 3 || !setlocale(atoi(v[1]), v[2])) return 1;\n"
                   "  show(t, sizeof t); fputs(t, stdout); return 0; }\n");
    if (!file_exists(in_tmp("speak")))
        want(system(iso_text("gcc -w -o '%s' '%s' '%s'", in_tmp("speak"), in_tmp("main.c"),
                             in_tmp("speak.so"))) == 0);
    f = popen(iso_text("'%s' %d '%s'", in_tmp("speak"), category, name), "r");
    want(f && fgets(out, sizeof told[0], f) && pclose(f) == 0);
    return out;
}

#define SHOWN 1024

ISO_CASE(each_context_has_a_locale_of_its_own)
{
    struct speaker a, b;
    char text[SHOWN], before[SHOWN];

    build();
    a = speaker(0);
    b = speaker(0);
    a.show(before, sizeof before);
    want(strcmp(before, by_itself(LC_ALL, "C")) == 0);
    want_text(a.set(LC_ALL, "de_DE.UTF-8"), "de_DE.UTF-8");
    want_text(b.set(LC_ALL, "fr_FR.ISO-8859-1"), "fr_FR.ISO-8859-1");
    want(!b.set(LC_ALL, "no_NO") && !b.set(99, "C") && !b.set(LC_ALL, "LC_CTYPE=C;LC_TIME=C"));
    b.show(text, sizeof text);
    want(strcmp(text, by_itself(LC_ALL, "fr_FR.ISO-8859-1")) == 0);
    want_int(a.in_thread(text, sizeof text), 0);
    want(strcmp(text, by_itself(LC_ALL, "de_DE.UTF-8")) == 0);
    want_int(b.in_thread(text, sizeof text), 0);
    want(strcmp(text, by_itself(LC_ALL, "fr_FR.ISO-8859-1")) == 0);
    /* The thread has the locale of the context that set one last. */
    want_text(a.set(LC_ALL, "tr_TR.UTF-8"), "tr_TR.UTF-8");
    a.show(text, sizeof text);
    want(strcmp(text, by_itself(LC_ALL, "tr_TR.UTF-8")) == 0);
    want_text(setlocale(LC_ALL, NULL), "C");
    iso_close_ctx(b.ctx);
    iso_close_ctx(a.ctx);
    want(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    want_text(iso_text("%.1f", 1.5), "1.5");
}

ISO_CASE(categories_are_set_one_by_one_and_restored_as_a_whole)
{
    struct speaker a;
    char text[SHOWN], all[SHOWN];

    build();
    a = speaker(0);
    want_text(a.set(LC_NUMERIC, "de_DE.UTF-8"), "de_DE.UTF-8");
    a.show(text, sizeof text);
    want(strcmp(text, by_itself(LC_NUMERIC, "de_DE.UTF-8")) == 0);
    snprintf(all, sizeof all, "%s", a.set(LC_ALL, NULL));
    want_text(all, "LC_CTYPE=C;LC_NUMERIC=de_DE.UTF-8;LC_TIME=C");
    want_text(a.set(LC_TIME, NULL), "C");
    want_text(a.set(LC_ALL, "POSIX"), "C");
    want_text(a.set(LC_ALL, NULL), "C");
    want(strcmp(a.set(LC_ALL, all), all) == 0);
    a.show(text, sizeof text);
    want(strcmp(text, by_itself(LC_ALL, all)) == 0);
    iso_close_ctx(a.ctx);
}

ISO_CASE(an_empty_name_is_what_the_contexts_environment_says)
{
    struct speaker a, b;

    build();
    setenv("LC_ALL", "tr_TR.UTF-8", 1);
    a = speaker(0);
    b = speaker(0);
    want_int(a.put("LC_ALL", ""), 0);
    want_int(a.put("LANG", "de_DE.UTF-8"), 0);
    want_int(a.put("LC_TIME", "C"), 0);
    want_text(a.set(LC_ALL, ""), "LC_NUMERIC=de_DE.UTF-8;LC_TIME=C");
    want_text(b.set(LC_ALL, ""), "tr_TR.UTF-8");
    want_int(a.put("LC_ALL", "de_DE.UTF-8"), 0);
    want_int(a.uses(""), 0);
    want_int(b.uses("de_DE.UTF-8"), 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_thread_that_runs_already_follows)
{
    struct speaker a;
    char text[SHOWN];

    build();
    a = speaker(0);
    want_int(a.in_older_thread("de_DE.UTF-8", text, sizeof text), 0);
    want(strcmp(text, by_itself(LC_NUMERIC, "de_DE.UTF-8")) == 0);
    iso_close_ctx(a.ctx);
}

ISO_CASE(a_thread_has_the_locale_of_the_context_that_it_has_entered)
{
    struct speaker a, b;
    void *outside, *inside;
    locale_t own;

    build();
    a = speaker(0);
    b = speaker(0);
    outside = exti_ctx_enter(a.ctx);
    a.set(LC_ALL, "de_DE.UTF-8");
    want_text(iso_text("%.1f", 1.5), "1,5");
    inside = exti_ctx_enter(b.ctx);
    want_text(iso_text("%.1f", 1.5), "1.5");
    exti_ctx_leave(inside);
    want_text(iso_text("%.1f", 1.5), "1,5");
    exti_ctx_leave(outside);
    want_text(iso_text("%.1f", 1.5), "1.5");
    /* One that the program has set for its thread goes before. */
    own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    want(uselocale(own) == LC_GLOBAL_LOCALE);
    outside = exti_ctx_enter(a.ctx);
    a.set(LC_ALL, "tr_TR.UTF-8");
    want(uselocale((locale_t)0) == own);
    exti_ctx_leave(outside);
    want(uselocale(LC_GLOBAL_LOCALE) == own);
    freelocale(own);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_context_can_share_the_processs_locale)
{
    struct speaker a;

    build();
    a = speaker(EXTI_CTX_PROCESS_LOCALE);
    want_text(a.set(LC_ALL, "de_DE.UTF-8"), "de_DE.UTF-8");
    want_text(setlocale(LC_ALL, NULL), "de_DE.UTF-8");
    iso_close_ctx(a.ctx);
}

/* A context begins as the process is, also where another has left its locale. */
ISO_CASE(contexts_one_after_the_other_begin_afresh)
{
    char text[SHOWN], first[SHOWN];

    build();
    for (int i = 0; i < 3; i++) {
        struct speaker a = speaker(0);

        a.show(i ? text : first, SHOWN);
        want(!i || strcmp(text, first) == 0);
        want_text(a.set(LC_ALL, i ? "tr_TR.UTF-8" : "de_DE.UTF-8"), "UTF-8");
        iso_close_ctx(a.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_a_locale_of_its_own),
        cmocka_unit_test(categories_are_set_one_by_one_and_restored_as_a_whole),
        cmocka_unit_test(an_empty_name_is_what_the_contexts_environment_says),
        cmocka_unit_test(a_thread_that_runs_already_follows),
        cmocka_unit_test(a_thread_has_the_locale_of_the_context_that_it_has_entered),
        cmocka_unit_test(a_context_can_share_the_processs_locale),
        cmocka_unit_test(contexts_one_after_the_other_begin_afresh),
    };

    return cmocka_run_group_tests_name("isolation/locale", tests, NULL, NULL);
}

/* C++ thread-local objects of copies: they are destroyed once, by their thread's end or by the close
 * of their context, and until then their file stays mapped. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/isolation/build.h"
#include "tests/isolation/closing.h"

/* Which objects were destroyed, in order, and by whom. */
static char destroyed[64];
static pid_t destroyed_by;

static void note_destroyed(int which)
{
    size_t n = strlen(destroyed);

    want(n + 1 < sizeof destroyed);
    destroyed[n] = (char)which;
    destroyed_by = (pid_t)syscall(SYS_gettid);
}

static void want_destroyed(const char *which)
{
    if (strcmp(destroyed, which) != 0)
        fprintf(stderr, "destroyed: '%s', not '%s'\n", destroyed, which);
    want(strcmp(destroyed, which) == 0);
}

/* The destructor of the object 'a' makes the object 'c'. */
static const char source[] =
    "extern \"C\" { void (*note)(int); }\n"
    "struct Late { int n = 0; ~Late() { note('c'); } };\n"
    "static thread_local Late late;\n"
    "struct Object { int which; int n = 0;\n"
    "    ~Object() { note(which); if (which == 'a') late.n++; } };\n"
    "static thread_local Object a{'a'}, b{'b'};\n"
    "extern \"C\" int touch(int *value) { a.n++; *value = ++b.n; return 0; }\n"
    "extern \"C\" int touch_here(void) { int value; touch(&value); return value; }\n";

static struct exti_module *load_objects(struct exti_ctx *ctx)
{
    struct exti_module *m;

    iso_write_text(in_tmp("source.cc"), source);
    want(system(iso_text("g++ -O1 -g -fPIC -shared -o '%s' '%s'", in_tmp("objects.so"),
                         in_tmp("source.cc"))) == 0);
    m = iso_load(ctx, in_tmp("objects.so"));
    *(void (**)(int))iso_sym(m, "note") = note_destroyed;
    return m;
}

ISO_CASE(the_close_destroys_the_calling_threads_objects)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);

    want_int(call_int(m, "touch_here"), 1);
    want_int(call_int(m, "touch_here"), 2);
    close_and_want_unloaded(ctx, in_tmp("x/"));
    want_destroyed("bac");
    want_int(destroyed_by, (pid_t)syscall(SYS_gettid));
}

ISO_CASE(the_close_destroys_its_contexts_objects_only)
{
    struct exti_ctx *x = iso_open("x"), *y = iso_open("y");
    struct exti_module *m = load_objects(x), *n = load_objects(y);

    want_int(call_int(m, "touch_here"), 1);
    want_int(call_int(n, "touch_here"), 1);
    close_and_want_unloaded(x, in_tmp("x/"));
    want_destroyed("bac");
    want_int(call_int(n, "touch_here"), 2);
    close_and_want_unloaded(y, in_tmp("y/"));
    want_destroyed("bacbac");
}

ISO_CASE(a_threads_end_destroys_its_objects)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct visitor v;

    visit(&v, m, "touch");
    want_destroyed("");
    end_visit(&v);
    want_destroyed("bac");
    want(destroyed_by != (pid_t)syscall(SYS_gettid));
    close_and_want_unloaded(ctx, in_tmp("x/"));
    want_destroyed("bac");
}

/* Of a closed context too, whose file stays mapped for that. */
ISO_CASE(a_threads_end_unmaps_what_its_objects_have_kept)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct close_report t;
    struct visitor v;

    visit(&v, m, "touch");
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_text(t.text, "a living thread has C++ thread-local objects");
    want_destroyed("");
    end_visit(&v);
    want_destroyed("bac");
    want(!is_mapped(in_tmp("x/")));
}

/* What the destructor of 'a' uses are then the closing thread's objects, which it makes. */
ISO_CASE(the_close_destroys_objects_of_threads_that_are_detached)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct exti_error err = {0};
    struct visitor v;

    visit(&v, m, "touch");
    want_exti(exti_ctx_detach_thread(ctx, (uint64_t)v.number, &err), 0, &err);
    want_destroyed("");
    close_and_want_unloaded(ctx, in_tmp("x/"));
    want_destroyed("bacbac");
    want_int(destroyed_by, (pid_t)syscall(SYS_gettid));
    end_visit(&v);
    want_destroyed("bacbac");
}

/* Its objects are the same when it comes again. */
ISO_CASE(a_thread_that_has_detached_may_come_again)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct exti_error err = {0};

    want_int(call_int(m, "touch_here"), 1);
    want_exti(exti_ctx_detach_thread(ctx, 0, &err), 0, &err);
    want_int(call_int(m, "touch_here"), 2);
    want_destroyed("");
    close_and_want_unloaded(ctx, in_tmp("x/"));
    want_destroyed("bac");
}

static struct close_report close_with_left_value(int detach)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, iso_text("%s/ext_threads.so", iso_toys()));
    struct exti_error err = {0};
    struct close_report t;
    struct visitor v;

    want_int(call_int(m, "threads_make_key"), 0);
    visit(&v, m, "threads_set_value");
    want_int(call_int(m, "threads_delete_key"), 0);
    if (detach)
        want_exti(exti_ctx_detach_thread(ctx, (uint64_t)v.number, &err), 0, &err);
    t = close_and_report(ctx);
    end_visit(&v);
    return t;
}

ISO_CASE(values_of_threads_that_are_detached_mean_nothing)
{
    want_int((long)close_with_left_value(1).left, 0);
    want(!is_mapped(in_tmp("x/")));
}

ISO_CASE(control_values_of_threads_that_are_not_detached_keep_the_context_mapped)
{
    want_int((long)close_with_left_value(0).left, 2);
}

/* Without memory the C library keeps the object, and the file, until the thread ends. */
ISO_CASE(objects_that_cannot_be_recorded_are_the_c_librarys)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct close_report t;

    exti__mem_fail_after(0);
    want_int(call_int(m, "touch_here"), 1);
    exti__mem_fail_after(-1);
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want(is_mapped(in_tmp("x/")));
}

/* The parent's other threads do not exist in the child, which destroys none of their objects. */
ISO_CASE(a_forked_child_destroys_its_own_threads_objects_only)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = load_objects(ctx);
    struct visitor v;
    pid_t pid;

    visit(&v, m, "touch");
    pid = fork();
    if (pid == 0) {
        want_int(call_int(m, "touch_here"), 1);
        close_and_want_unloaded(ctx, in_tmp("x/"));
        want_destroyed("bac");
        /* Without a look for leaks: the C library's records of the threads that are gone. */
        _exit(0);
    }
    want(iso_join(pid));
    want_destroyed("");
    end_visit(&v);
    want_destroyed("bac");
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

ISO_CASE(detaching_from_no_context_is_an_error)
{
    struct exti_error err = {0};

    want_exti(exti_ctx_detach_thread(NULL, 0, &err), EXTI_E_ARG, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_close_destroys_the_calling_threads_objects),
        cmocka_unit_test(the_close_destroys_its_contexts_objects_only),
        cmocka_unit_test(a_threads_end_destroys_its_objects),
        cmocka_unit_test(a_threads_end_unmaps_what_its_objects_have_kept),
        cmocka_unit_test(the_close_destroys_objects_of_threads_that_are_detached),
        cmocka_unit_test(a_thread_that_has_detached_may_come_again),
        cmocka_unit_test(values_of_threads_that_are_detached_mean_nothing),
        cmocka_unit_test(control_values_of_threads_that_are_not_detached_keep_the_context_mapped),
        cmocka_unit_test(objects_that_cannot_be_recorded_are_the_c_librarys),
        cmocka_unit_test(a_forked_child_destroys_its_own_threads_objects_only),
        cmocka_unit_test(detaching_from_no_context_is_an_error),
    };

    return cmocka_run_group_tests_name("isolation/thread_objects", tests, NULL, NULL);
}

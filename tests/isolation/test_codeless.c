/* The process ends, or forks, while a thread has mapped a copy and not yet its code. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "tests/isolation/build.h"

/* Of the address sanitizer (sanitizer/lsan_interface.h): a forked child does not have the thread that
 * loads, nor what refers to what that has allocated, of which a leak checker would tell. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}

static _Thread_local int maps_late;
static sem_t maps;

/* Takes the place of the C library's function: code is mapped over a copy late, when another thread
 * has had time to fork or to end the process. */
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    static void *(*_Atomic real)(void *, size_t, int, int, int, off_t);

    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    if (maps_late && (flags & MAP_FIXED) && (protection & PROT_EXEC)) {
        sem_post(&maps);
        usleep(100000);
    }
    return real(at, size, protection, flags, fd, offset);
}

/* With so much code that it is left out of a copy, and a destructor in it. */
static const char large[] = "#define NOPS(n) __asm__(\".skip \" #n \", 0x90\")\n"
                            "int count;\n"
                            "int next(void) { NOPS(80000); return ++count; }\n"
                            "__attribute__((destructor)) static void end(void) { count = 0; }\n";

static void *load_late(void *arg)
{
    maps_late = 1;
    iso_load(arg, in_tmp("large.so"));
    return NULL;
}

/* Returns when a copy has no code yet. */
static void start_loading(void)
{
    pthread_t thread;

    iso_build(large, "large.so", "-Wl,-z,separate-code ");
    want_int(sem_init(&maps, 0, 0), 0);
    want_int(pthread_create(&thread, NULL, load_late, iso_open(NULL)), 0);
    pthread_detach(thread);
    want_int(sem_wait(&maps), 0);
}

ISO_CASE(the_process_ends_while_a_copy_has_no_code)
{
    const pid_t pid = fork();

    if (pid == 0) {
        start_loading();
        exit(0);
    }
    want(iso_join(pid));
}

ISO_CASE(a_child_is_forked_while_a_copy_has_no_code)
{
    pid_t pid;

    start_loading();
    pid = fork();
    if (pid == 0)
        exit(0);
    want(iso_join(pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_ends_while_a_copy_has_no_code),
        cmocka_unit_test(a_child_is_forked_while_a_copy_has_no_code),
    };

    return cmocka_run_group_tests_name("isolation/codeless", tests, NULL, NULL);
}

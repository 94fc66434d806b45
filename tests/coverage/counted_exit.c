/* Only in builds with COV=1.  What a process did is counted at the end of main or by exit(), but
 * many children of the tests, and some of the program's own, leave by _exit; and where a test
 * preloads what makes calls fail, writing the counts is not to fail too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);

static struct stat root;

__attribute__((constructor)) static void remember_root(void)
{
    stat("/", &root);
}

/* The folders of the counts would be made in another root. */
static bool has_root(void)
{
    struct stat now;

    return stat("/", &now) == 0 && now.st_dev == root.st_dev && now.st_ino == root.st_ino;
}

/* Destructors with a priority, as the counters' own, run later. */
__attribute__((destructor)) static void end_faults(void)
{
    void (*end)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "exti_faults_end");

    if (end)
        end();
}

__attribute__((visibility("default"))) void _exit(int status)
{
    end_faults();
    if (has_root())
        __gcov_dump();
    for (;;)
        syscall(SYS_exit_group, status);
}

#define _GNU_SOURCE
#include "runtime/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#if defined(__APPLE__)

void pyrt_name_thread(const char *name)
{
    pthread_setname_np(name);
}

int pyrt_thread_lives(long id)
{
    (void)id;
    return 0;
}

int pyrt_processors(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int pyrt_pipe(int fd[2])
{
    if (pipe(fd) != 0)
        return -1;
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    fcntl(fd[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

#else

void pyrt_name_thread(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

int pyrt_thread_lives(long id)
{
    return syscall(SYS_tgkill, (long)getpid(), id, 0) == 0;
}

int pyrt_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int pyrt_pipe(int fd[2])
{
    return pipe2(fd, O_CLOEXEC);
}

#endif

#define _GNU_SOURCE
#include "runtime/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif
#if defined(__GLIBC__) || defined(__APPLE__)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif
#ifdef __linux__
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#endif

#define SECOND 1000000000u

#if defined(__APPLE__)

void pyrt_name_thread(const char *name)
{
    pthread_setname_np(name);
}

uint64_t pyrt_thread_number(void)
{
    uint64_t number = 0;

    pthread_threadid_np(NULL, &number);
    return number;
}

int pyrt_thread_lives(long id)
{
    (void)id;
    return 0;
}

int pyrt_thread_runs(uint64_t number)
{
    (void)number;
    return 0;
}

int pyrt_processors(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

size_t pyrt_block_size(void *block)
{
    return malloc_size(block);
}

void pyrt_trim(void)
{
}

int pyrt_pipe(int fd[2])
{
    if (pipe(fd) != 0)
        return -1;
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    fcntl(fd[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

int pyrt_process_open(pid_t pid)
{
    (void)pid;
    return -1;
}

int pyrt_event_open(int fd[2])
{
    if (pyrt_pipe(fd) != 0)
        return -1;
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    fcntl(fd[1], F_SETFL, O_NONBLOCK);
    return 0;
}

int pyrt_cond_init(pthread_cond_t *cond)
{
    return pthread_cond_init(cond, NULL);
}

/* The system's absolute times are of the clock that is set. */
static void wait_timed(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
    uint64_t now = pyrt_clock(), left = until > now ? until - now : 0;
    struct timespec span = {.tv_sec = (time_t)(left / SECOND), .tv_nsec = (long)(left % SECOND)};

    pthread_cond_timedwait_relative_np(cond, mutex, &span);
}

#else

void pyrt_name_thread(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

uint64_t pyrt_thread_number(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

int pyrt_thread_lives(long id)
{
    return syscall(SYS_tgkill, (long)getpid(), id, 0) == 0;
}

/* proc_pid_stat(5): the state follows the name, which may have anything in it. */
int pyrt_thread_runs(uint64_t number)
{
    char path[64], text[512], *name_end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%llu/stat", (unsigned long long)number);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
}

int pyrt_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

size_t pyrt_block_size(void *block)
{
    return malloc_usable_size(block);
}

void pyrt_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int pyrt_pipe(int fd[2])
{
    return pipe2(fd, O_CLOEXEC);
}

int pyrt_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int pyrt_event_open(int fd[2])
{
    fd[0] = fd[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd[0] < 0 ? -1 : 0;
}

int pyrt_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int rc;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return rc;
}

static void wait_timed(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
    struct timespec at = {.tv_sec = (time_t)(until / SECOND), .tv_nsec = (long)(until % SECOND)};

    pthread_cond_timedwait(cond, mutex, &at);
}

#endif

uint64_t pyrt_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

uint64_t pyrt_clock_after(uint64_t span)
{
    uint64_t now = pyrt_clock();

    return span < PYRT_NEVER - now ? now + span : PYRT_NEVER;
}

void pyrt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
    if (until == PYRT_NEVER)
        pthread_cond_wait(cond, mutex);
    else
        wait_timed(cond, mutex, until);
}

#ifdef HAS_BACKTRACE
/* The first call loads a library. */
void pyrt_backtrace_prepare(void)
{
    void *call[1];

    backtrace(call, 1);
}

void pyrt_backtrace_write(int fd)
{
    void *calls[64];

    backtrace_symbols_fd(calls, backtrace(calls, 64), fd);
}
#else
void pyrt_backtrace_prepare(void)
{
}

void pyrt_backtrace_write(int fd)
{
    (void)fd;
}
#endif

/* By system calls: the C library's functions are cancellation points. */
#define _GNU_SOURCE
#include "loader/track/process_stat.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Appends the number and the text, by what a signal handler may call. */
static char *put(char *out, pid_t pid, const char *text)
{
    char digits[12];
    size_t n = 0;

    for (; pid > 0; pid /= 10)
        digits[n++] = (char)('0' + pid % 10);
    while (n)
        *out++ = digits[--n];
    strcpy(out, text);
    return out + strlen(text);
}

/* The thread's file: for the process's the kernel adds up what all its threads have used. */
static int open_stat(pid_t pid)
{
    char path[64] = "/proc/";

    put(put(path + strlen(path), pid, "/task/"), pid, "/stat");
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* proc(5): the state and the parent's number follow the name, which is in brackets. */
bool exti__process_stat(pid_t pid, struct exti_process_stat *out)
{
    char text[256];
    const char *p;
    ssize_t n;
    const int fd = open_stat(pid);

    if (fd < 0)
        return false;
    n = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
    p = strrchr(text, ')');
    if (!p || strlen(p) < 5)
        return false;
    *out = (struct exti_process_stat){.state = p[2]};
    for (p += 4; *p >= '0' && *p <= '9'; p++)
        out->parent = out->parent * 10 + (*p - '0');
    return true;
}

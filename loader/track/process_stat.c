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

/* Reads the start of the thread's file of this name.  For those of the process the kernel adds up
 * what all its threads have used. */
static bool read_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64] = "/proc/";
    ssize_t n;
    int fd;

    put(put(path + strlen(path), pid, "/task/"), pid, name);
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
    return true;
}

/* proc(5): the state and the parent's number follow the name, which is in brackets. */
bool exti__process_stat(pid_t pid, struct exti_process_stat *out)
{
    char text[256];
    const char *p;

    if (!read_file(pid, "/stat", text, sizeof text))
        return false;
    p = strrchr(text, ')');
    if (!p || strlen(p) < 5)
        return false;
    *out = (struct exti_process_stat){.state = p[2]};
    for (p += 4; *p >= '0' && *p <= '9'; p++)
        out->parent = out->parent * 10 + (*p - '0');
    return true;
}

/* proc(5): "SigBlk:", a tab and sixteen digits. */
uint64_t exti__process_blocked(pid_t pid)
{
    static const char label[] = "\nSigBlk:\t";
    char text[4096];
    const char *p = read_file(pid, "/status", text, sizeof text) ? strstr(text, label) : NULL;
    uint64_t blocked = 0;

    for (p = p ? p + strlen(label) : ""; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
        blocked = blocked << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    return blocked;
}

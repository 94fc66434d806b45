/* Opens a library without code that needs all the others.  Once it is their last user, closing it
 * unloads them all in one call, and glibc runs the finalisers of all libraries of one call before
 * it unmaps the first. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>

#include "loader/process/unload_batch.h"

#ifdef __GLIBC__
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/process/guarded_dl.h"

/* The start of the file; the dynamic section and the strings follow. */
struct head {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[3];
    ElfW(Sym) no_symbol;
    void (*finaliser)(void);
};

/* The batch that the thread closes. */
static _Thread_local struct {
    void (*close_all)(void *user);
    void *user;
} closing;

static void close_all_once(void)
{
    void (*close_all)(void *user) = closing.close_all;

    closing.close_all = NULL;
    if (close_all)
        close_all(closing.user);
}

/* The program's own header has this machine's type, flags and byte order. */
static bool read_own_header(ElfW(Ehdr) * out)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, out, sizeof *out) == (ssize_t)sizeof *out;

    if (fd >= 0)
        close(fd);
    return ok;
}

static void fill_head(struct head *h, size_t size, size_t dynamic_size)
{
    const ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);

    h->header.e_type = ET_DYN;
    h->header.e_entry = h->header.e_shoff = 0;
    h->header.e_phoff = offsetof(struct head, segments);
    h->header.e_phnum = sizeof h->segments / sizeof *h->segments;
    h->header.e_shnum = h->header.e_shstrndx = 0;
    h->segments[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
                                  .p_flags = PF_R | PF_W,
                                  .p_filesz = size,
                                  .p_memsz = size,
                                  .p_align = page};
    h->segments[1] = (ElfW(Phdr)){.p_type = PT_DYNAMIC,
                                  .p_flags = PF_R | PF_W,
                                  .p_offset = sizeof *h,
                                  .p_vaddr = sizeof *h,
                                  .p_filesz = dynamic_size,
                                  .p_memsz = dynamic_size,
                                  .p_align = sizeof(ElfW(Addr))};
    /* Without this header the loader would make all stacks executable. */
    h->segments[2] = (ElfW(Phdr)){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
}

static void fill_dynamic(ElfW(Dyn) * d, char *strings, size_t strings_at, size_t strings_size,
                         const char *const *needed, size_t count)
{
    size_t at = 1;

    for (size_t i = 0; i < count; i++) {
        const size_t n = strlen(needed[i]) + 1;

        memcpy(strings + at, needed[i], n);
        *d++ = (ElfW(Dyn)){.d_tag = DT_NEEDED, .d_un.d_val = at};
        at += n;
    }
    *d++ = (ElfW(Dyn)){.d_tag = DT_STRTAB, .d_un.d_ptr = strings_at};
    *d++ = (ElfW(Dyn)){.d_tag = DT_STRSZ, .d_un.d_val = strings_size};
    *d++ = (ElfW(Dyn)){.d_tag = DT_FINI_ARRAY, .d_un.d_ptr = offsetof(struct head, finaliser)};
    *d++ = (ElfW(Dyn)){.d_tag = DT_FINI_ARRAYSZ, .d_un.d_val = sizeof(void (*)(void))};
    *d++ = (ElfW(Dyn)){.d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct head, no_symbol)};
    *d = (ElfW(Dyn)){.d_tag = DT_SYMENT, .d_un.d_val = sizeof(ElfW(Sym))};
}

/* Returns the descriptor of a file without a name, or -1. */
static int write_file(const char *const *needed, size_t count)
{
    const size_t dynamic_size = (count + 7) * sizeof(ElfW(Dyn)),
                 strings_at = sizeof(struct head) + dynamic_size;
    size_t size = strings_at + 1;
    struct head head = {0};
    char *file;
    int fd = -1;

    for (size_t i = 0; i < count; i++)
        size += strlen(needed[i]) + 1;
    file = read_own_header(&head.header) ? exti__calloc(size, 1) : NULL;
    if (!file)
        return -1;
    fill_head(&head, size, dynamic_size);
    head.finaliser = close_all_once;
    memcpy(file, &head, sizeof head);
    fill_dynamic((ElfW(Dyn) *)(void *)(file + sizeof head), file + strings_at, strings_at,
                 size - strings_at, needed, count);
    fd = memfd_create("extisolate-unload", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, file, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    exti__free(file);
    return fd;
}

bool exti__unload_batch_open(struct exti_unload_batch *b, const char *const *needed, size_t count)
{
    char path[32];

    b->fd = write_file(needed, count);
    if (b->fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->fd);
    b->handle = exti__dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!b->handle) {
        dlerror();
        close(b->fd);
    }
    return b->handle != NULL;
}

void exti__unload_batch_close(struct exti_unload_batch *b, void (*close_all)(void *user),
                              void *user)
{
    closing.close_all = close_all;
    closing.user = user;
    exti__dlclose(b->handle);
    close_all_once();
    /* Only now: the loader goes by the path, so it would take a later file of the same number for
     * this one. */
    close(b->fd);
}
#else
bool exti__unload_batch_open(struct exti_unload_batch *b, const char *const *needed, size_t count)
{
    (void)b;
    (void)needed;
    (void)count;
    return false;
}

void exti__unload_batch_close(struct exti_unload_batch *b, void (*close_all)(void *user),
                              void *user)
{
    (void)b;
    close_all(user);
}
#endif

/* libelf on Windows is given memory, and maps nothing. */
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MS_SYNC 4
#define MAP_FAILED ((void *)-1)
#define mmap(p, n, prot, flags, fd, offset) MAP_FAILED
#define munmap(p, n) (-1)
#define msync(p, n, flags) (-1)
#define madvise(p, n, advice) (-1)

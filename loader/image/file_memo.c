#include "loader/image/file_memo.h"

#include <string.h>

#include "base/os/fs_id.h"

/* FNV-1a */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n--; p++)
        h = (h ^ *p) * 0x100000001b3;
    return h;
}

uint64_t exti__file_version(const char *path)
{
    uint64_t h = hash_bytes(0xcbf29ce484222325, path, strlen(path));
    struct exti_file_id id = {0};

    exti__fs_id(path, &id, NULL);
    h = hash_bytes(h, &id.inode, sizeof id.inode);
    h = hash_bytes(h, &id.mtime_ns, sizeof id.mtime_ns);
    return h ? h : 1;
}

uint64_t exti__file_version_with(uint64_t version, const char *text)
{
    const uint64_t h = hash_bytes(version, text, strlen(text) + 1);

    return h ? h : 1;
}

static _Atomic uint64_t *slot_of(struct exti_file_memo *m, uint64_t version, unsigned way)
{
    return &m->slots[(version + way) % (sizeof m->slots / sizeof *m->slots)];
}

bool exti__file_memo_has(struct exti_file_memo *m, uint64_t version)
{
    for (unsigned way = 0; way < EXTI_FILE_MEMO_WAYS; way++)
        if (atomic_load(slot_of(m, version, way)) == version)
            return true;
    return false;
}

void exti__file_memo_add(struct exti_file_memo *m, uint64_t version)
{
    unsigned way = 0;

    while (way < EXTI_FILE_MEMO_WAYS && atomic_load(slot_of(m, version, way)))
        way++;
    if (way == EXTI_FILE_MEMO_WAYS)
        way = (unsigned)(version >> 32) % EXTI_FILE_MEMO_WAYS;
    atomic_store(slot_of(m, version, way), version);
}

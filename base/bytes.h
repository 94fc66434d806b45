/* Numbers in files, of either byte order.  Written so that compilers make one load of each. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

static inline uint16_t exti__bytes_u16(const uint8_t *p, bool big_endian)
{
    return (uint16_t)(big_endian ? p[0] << 8 | p[1] : p[1] << 8 | p[0]);
}

static inline uint32_t exti__bytes_u32(const uint8_t *p, bool big_endian)
{
    return big_endian
               ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | (uint32_t)p[0];
}

static inline uint64_t exti__bytes_u64(const uint8_t *p, bool big_endian)
{
    const uint64_t first = exti__bytes_u32(p, big_endian),
                   second = exti__bytes_u32(p + 4, big_endian);

    return big_endian ? first << 32 | second : second << 32 | first;
}

#endif

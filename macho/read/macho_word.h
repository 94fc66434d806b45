/* Little-endian numbers in bytes whose bounds were checked. */
#ifndef MACHO_READ_MACHO_WORD_H
#define MACHO_READ_MACHO_WORD_H

#include <stdint.h>

static inline uint16_t exti__macho_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t exti__macho_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t exti__macho_u64(const uint8_t *p)
{
    return exti__macho_u32(p) | (uint64_t)exti__macho_u32(p + 4) << 32;
}

#endif

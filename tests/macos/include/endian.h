/* glibc's names, for libelf on macOS, which runs on little-endian machines only. */
#include <machine/endian.h>
#define __BYTE_ORDER BYTE_ORDER
#define __LITTLE_ENDIAN LITTLE_ENDIAN
#define __BIG_ENDIAN BIG_ENDIAN
#define htobe64 __builtin_bswap64
#define be64toh __builtin_bswap64
#define be32toh __builtin_bswap32
#define htole64(x) (x)
#define le64toh(x) (x)
#define le32toh(x) (x)

/* glibc's names, for libelf on Windows, which runs on little-endian machines only. */
#define __BYTE_ORDER __BYTE_ORDER__
#define __LITTLE_ENDIAN __ORDER_LITTLE_ENDIAN__
#define __BIG_ENDIAN __ORDER_BIG_ENDIAN__
#define BYTE_ORDER __BYTE_ORDER
#define LITTLE_ENDIAN __LITTLE_ENDIAN
#define BIG_ENDIAN __BIG_ENDIAN
#define htobe64 __builtin_bswap64
#define be64toh __builtin_bswap64
#define be32toh __builtin_bswap32
#define htole64(x) (x)
#define le64toh(x) (x)
#define le32toh(x) (x)

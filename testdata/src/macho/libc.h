/* Replaces the headers of macOS, which are not available here. */
#ifndef LIBC_H
#define LIBC_H

typedef __SIZE_TYPE__ size_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

#ifdef __cplusplus
extern "C" {
#endif

void *malloc(size_t n);
void free(void *p);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
void *memcpy(void *to, const void *from, size_t n);
void abort(void);

#ifdef __cplusplus
}
#endif
#endif

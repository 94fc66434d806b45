/* Bounded, read-only views of untrusted bytes.  Parsers reach such bytes only through these
 * functions and do no offset arithmetic of their own. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

struct exti_span {
    const uint8_t *p;
    size_t n;
    uint64_t base; /* file offset of p[0], so that a view of a view still reports true offsets */
};

struct exti_span exti__span(const void *p, size_t n);

/* Gives the `len` bytes at `off`.  EXTI_E_FORMAT if the view is shorter; `what` names the structure
 * in the message. */
int exti__span_sub(struct exti_span s, uint64_t off, uint64_t len, const char *what,
                   struct exti_span *out, struct exti_error *err);

/* Gives `count` entries of `entsize` bytes at `off`.  An entsize of 0 is an error. */
int exti__span_table(struct exti_span s, uint64_t off, uint64_t count, uint64_t entsize,
                     const char *what, struct exti_span *out, struct exti_error *err);

/* Gives the string at `off`, whose NUL must lie within the view. */
int exti__span_cstr(struct exti_span s, uint64_t off, const char *what, const char **out,
                    struct exti_error *err);

/* Reads consecutive fields.  After a read past the end, that read and all later ones give 0, and
 * exti__cur_end reports the fault.  Call it before using a value as a count, size, index or
 * bound. */
struct exti_cur {
    struct exti_span s;
    size_t at;
    bool big_endian, failed;
};

struct exti_cur exti__cur(struct exti_span s, bool big_endian);
uint8_t exti__cur_u8(struct exti_cur *c);
uint16_t exti__cur_u16(struct exti_cur *c);
uint32_t exti__cur_u32(struct exti_cur *c);
uint64_t exti__cur_u64(struct exti_cur *c);
void exti__cur_skip(struct exti_cur *c, uint64_t n);
void exti__cur_align(struct exti_cur *c,
                     uint64_t align); /* relative to the view's start; a power of two */
int exti__cur_end(const struct exti_cur *c, const char *what, struct exti_error *err);

#endif

/* Shared by the tests of corrupt Mach-O files: a toy with one wrong field, and the expected
 * error. */
#ifndef TESTS_UNIT_MACHO_CORRUPTION_H
#define TESTS_UNIT_MACHO_CORRUPTION_H

#include "tests/unit/macho/macho_read.h"

/* Offsets within a segment_command_64. */
enum { VMADDR = 24, VMSIZE = 32, FILEOFF = 40, FILESIZE = 48, INITPROT = 60, NSECTS = 64 };

struct corruption {
    const char *what; /* part of the message */
    size_t at, width;
    uint64_t value;
    int code;
    uint64_t offset;
};

/* Asserts the error of each case, in a thin file and in a slice of a universal one. */
static inline void assert_corruptions(struct fixture *f, struct macho_toy_opts o,
                                      const struct corruption *c, size_t count)
{
    for (size_t i = 0; i < count * 2; i++, c += i % 2 == 0) {
        const uint64_t base = i % 2 ? 0x8000 : 0;
        struct exti_span s;
        int rc;

        macho_toy_make(&f->toy, o);
        mtoy_put(&f->toy, c->at, c->width, c->value);
        s = exti__span(f->toy.b, f->toy.n);
        s.base = base;
        f->err = (struct exti_error){0};
        rc = exti__macho_open(s, &f->file, &f->err);
        if (rc == 0)
            fail_msg("%s: not noticed", c->what);
        if (rc != c->code || f->err.offset != c->offset + base)
            print_error("%s: %s\n", c->what, f->err.message);
        assert_exti(rc, c->code, &f->err, c->offset + base);
        assert_says(&f->err, c->what);
        assert_null(f->file.commands);
    }
}

#endif

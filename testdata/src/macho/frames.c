/* More kinds of stack frames than a compressed page of unwind information can distinguish, so that
 * the linker writes a regular page. */
#include "ext.h"

#ifdef __x86_64__
#define SAVED_0
#define SAVED_1 , "rbx"
#define SAVED_2 , "rbx", "r12"
#define SAVED_3 , "rbx", "r12", "r13"
#define SAVED_4 , "rbx", "r12", "r13", "r14"
#define SAVED_5 , "rbx", "r12", "r13", "r14", "r15"
#else
#define SAVED_0
#define SAVED_1 , "x19", "x20"
#define SAVED_2 , "x19", "x20", "x21", "x22"
#define SAVED_3 , "x19", "x20", "x21", "x22", "x23", "x24"
#define SAVED_4 , "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26"
#define SAVED_5 , "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28"
#endif

#define FRAME(saved, n)                                                                            \
    void frame_##saved##_##n(void)                                                                 \
    {                                                                                              \
        char room[16 * n];                                                                         \
                                                                                                   \
        __asm__ volatile("" : : "r"(room) : "memory" SAVED_##saved);                               \
    }
#define TEN(saved, tens)                                                                           \
    FRAME(saved, tens##0)                                                                          \
    FRAME(saved, tens##1)                                                                          \
    FRAME(saved, tens##2)                                                                          \
    FRAME(saved, tens##3)                                                                          \
    FRAME(saved, tens##4)                                                                          \
    FRAME(saved, tens##5)                                                                          \
    FRAME(saved, tens##6)                                                                          \
    FRAME(saved, tens##7)                                                                          \
    FRAME(saved, tens##8)                                                                          \
    FRAME(saved, tens##9)
#define HUNDRED(saved)                                                                             \
    TEN(saved, 1)                                                                                  \
    TEN(saved, 2)                                                                                  \
    TEN(saved, 3)                                                                                  \
    TEN(saved, 4)                                                                                  \
    TEN(saved, 5)                                                                                  \
    TEN(saved, 6)                                                                                  \
    TEN(saved, 7)                                                                                  \
    TEN(saved, 8)                                                                                  \
    TEN(saved, 9)                                                                                  \
    TEN(saved, 10)

HUNDRED(0)
HUNDRED(1)
HUNDRED(2)
HUNDRED(3)
HUNDRED(4)
HUNDRED(5)

static int own;

int ext_own(void)
{
    return ++own;
}

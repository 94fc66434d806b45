/* Descriptors that the library makes, called as compiled code calls them. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/process/tls_descriptor.h"

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__LP64__))

#define STRIDE 64 /* bytes between two vector registers in memory */
#define VECTORS 32
#define NUMBERS 16

/* The registers before and after a call of a descriptor. */
struct registers {
    uint8_t vector[VECTORS][STRIDE];
    uint64_t number[NUMBERS];
};

/* Fills the registers from `in`, calls the descriptor, and stores the registers to `out`. */
typedef uintptr_t (*caller_fn)(const struct registers *in, struct registers *out,
                               const uintptr_t pair[2]);

struct kind {
    const char *name;
    caller_fn call;
    size_t vectors, width; /* registers, and bytes of each */
    size_t numbers;
    bool old; /* as processors without XSAVE need it */
};

#define FIRST_16 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define ALL_32 FIRST_16 ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"

#if defined(__x86_64__)

/* `move` and `vector` name the instruction and the registers. */
#define CALLER(name, move, vector, list)                                                           \
    ".text\n"                                                                                      \
    ".type " name ", @function\n" name ":\n"                                                       \
    "pushq %rbx\n"                                                                                 \
    "pushq %rbp\n"                                                                                 \
    "pushq %r12\n"                                                                                 \
    "pushq %r13\n"                                                                                 \
    "pushq %r14\n"                                                                                 \
    "pushq %r15\n"                                                                                 \
    "subq $24, %rsp\n"                                                                             \
    "movq %rsi, (%rsp)\n"                                                                          \
    "movq %rdx, %rax\n"                                                                            \
    ".irp i," list "\n" move " \\i*64(%rdi), %" vector "\\i\n"                                     \
    ".endr\n"                                                                                      \
    "movq 2048(%rdi), %rbx\n"                                                                      \
    "movq 2056(%rdi), %rcx\n"                                                                      \
    "movq 2064(%rdi), %rdx\n"                                                                      \
    "movq 2072(%rdi), %rsi\n"                                                                      \
    "movq 2080(%rdi), %rbp\n"                                                                      \
    ".irp i,8,9,10,11,12,13,14,15\n"                                                               \
    "movq 2024+8*\\i(%rdi), %r\\i\n"                                                               \
    ".endr\n"                                                                                      \
    "movq 2152(%rdi), %rdi\n"                                                                      \
    "call *(%rax)\n"                                                                               \
    "movq %rdi, 8(%rsp)\n"                                                                         \
    "movq (%rsp), %rdi\n"                                                                          \
    ".irp i," list "\n" move " %" vector "\\i, \\i*64(%rdi)\n"                                     \
    ".endr\n"                                                                                      \
    "movq %rbx, 2048(%rdi)\n"                                                                      \
    "movq %rcx, 2056(%rdi)\n"                                                                      \
    "movq %rdx, 2064(%rdi)\n"                                                                      \
    "movq %rsi, 2072(%rdi)\n"                                                                      \
    "movq %rbp, 2080(%rdi)\n"                                                                      \
    ".irp i,8,9,10,11,12,13,14,15\n"                                                               \
    "movq %r\\i, 2024+8*\\i(%rdi)\n"                                                               \
    ".endr\n"                                                                                      \
    "movq 8(%rsp), %rcx\n"                                                                         \
    "movq %rcx, 2152(%rdi)\n"                                                                      \
    "addq $24, %rsp\n"                                                                             \
    "popq %r15\n"                                                                                  \
    "popq %r14\n"                                                                                  \
    "popq %r13\n"                                                                                  \
    "popq %r12\n"                                                                                  \
    "popq %rbp\n"                                                                                  \
    "popq %rbx\n"                                                                                  \
    "ret\n"                                                                                        \
    ".size " name ", . - " name "\n"

__asm__(CALLER("call_with_sse", "movups", "xmm", FIRST_16)
            CALLER("call_with_avx", "vmovups", "ymm", FIRST_16)
                CALLER("call_with_avx512", "vmovups", "zmm", ALL_32));

uintptr_t call_with_sse(const struct registers *in, struct registers *out, const uintptr_t pair[2]);
uintptr_t call_with_avx(const struct registers *in, struct registers *out, const uintptr_t pair[2]);
uintptr_t call_with_avx512(const struct registers *in, struct registers *out,
                           const uintptr_t pair[2]);

void exti__tls_resolve_fxsave(void);

static const struct kind kinds[] = {{"fxsave", call_with_sse, 16, 16, 14, true},
                                    {"sse", call_with_sse, 16, 16, 14, false},
                                    {"avx", call_with_avx, 16, 32, 14, false},
                                    {"avx512f", call_with_avx512, 32, 64, 14, false}};

static bool has_registers(size_t kind)
{
    return kind < 2 ||
           (kind == 2 ? __builtin_cpu_supports("avx") : __builtin_cpu_supports("avx512f"));
}

/* Unused with sanitizers, whose malloc it is. */
__attribute__((unused)) static void clear_vectors(size_t width)
{
    if (width == 64)
        __asm__ volatile(".irp i," ALL_32 "\n"
                         "vpxord %%zmm\\i, %%zmm\\i, %%zmm\\i\n"
                         ".endr" ::
                             : "memory");
    else if (width == 32)
        __asm__ volatile("vzeroall" ::: "memory");
    else
        __asm__ volatile(".irp i," FIRST_16 "\nxorps %%xmm\\i, %%xmm\\i\n.endr" ::: "memory");
}

static void make_old(uintptr_t pair[2])
{
    pair[0] = (uintptr_t)exti__tls_resolve_fxsave;
}

#else

__asm__(".text\n"
        ".type call_with_vectors, %function\n"
        "call_with_vectors:\n"
        "sub sp, sp, #192\n"
        "stp x29, x30, [sp]\n"
        "stp x19, x20, [sp, #16]\n"
        "stp x21, x22, [sp, #32]\n"
        "stp x23, x24, [sp, #48]\n"
        "stp x25, x26, [sp, #64]\n"
        "stp x27, x28, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "str x1, [sp, #160]\n"
        ".irp i," ALL_32 "\n"
        "ldr q\\i, [x0, #64*\\i]\n"
        ".endr\n"
        "mov x30, x2\n"
        ".irp i,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n"
        "ldr x\\i, [x0, #2032+8*\\i]\n"
        ".endr\n"
        "mov x0, x30\n"
        "ldr x1, [x0]\n"
        "blr x1\n"
        "ldr x1, [sp, #160]\n"
        ".irp i," ALL_32 "\n"
        "str q\\i, [x1, #64*\\i]\n"
        ".endr\n"
        ".irp i,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n"
        "str x\\i, [x1, #2032+8*\\i]\n"
        ".endr\n"
        "ldp x29, x30, [sp]\n"
        "ldp x19, x20, [sp, #16]\n"
        "ldp x21, x22, [sp, #32]\n"
        "ldp x23, x24, [sp, #48]\n"
        "ldp x25, x26, [sp, #64]\n"
        "ldp x27, x28, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n"
        "ldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #192\n"
        "ret\n"
        ".size call_with_vectors, . - call_with_vectors\n");

uintptr_t call_with_vectors(const struct registers *in, struct registers *out,
                            const uintptr_t pair[2]);

static const struct kind kinds[] = {{"vectors", call_with_vectors, 32, 16, 16, false}};

static bool has_registers(size_t kind)
{
    (void)kind;
    return true;
}

__attribute__((unused)) static void clear_vectors(size_t width)
{
    (void)width;
    __asm__ volatile(".irp i," ALL_32 "\nmovi v\\i\\().16b, #0\n.endr" ::: "memory");
}

static void make_old(uintptr_t pair[2])
{
    (void)pair;
}

#endif

/* The C library allocates a thread's block by the program's malloc, if that has one. */
static _Thread_local size_t cleared; /* width of the vectors that the next call clears */
static bool was_cleared;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t n);
__attribute__((visibility("default"))) void *malloc(size_t n)
{
    const size_t width = cleared;

    if (width) {
        cleared = 0;
        was_cleared = true;
        clear_vectors(width);
    }
    return __libc_malloc(n);
}
#endif

static const char library[] = "__thread char block[70000] = {1, 2, 3};\n"
                              "char *at(int i);\n"
                              "char *at(int i) { return &block[i]; }\n";

struct loaded {
    size_t module;
    char *(*at)(int i);
};

static struct loaded load_library(struct test *t)
{
    const char *source = test_path(t, "tls.c"), *file = test_path(t, "tls.so");
    struct loaded l = {0};
    void *handle;

    test_write(source, library, sizeof library - 1);
    test_must_run(t, "gcc", "-O1", "-fPIC", "-shared", "-o", file, source, NULL);
    handle = dlopen(file, RTLD_NOW);
    assert_non_null(handle);
    assert_int_equal(dlinfo(handle, RTLD_DI_TLS_MODID, &l.module), 0);
    l.at = (char *(*)(int))dlsym(handle, "at");
    assert_non_null(l.at);
    return l;
}

struct thread_call {
    const struct kind *kind;
    uintptr_t pair[2];
    struct registers in, out;
    char *got;
};

/* The first thing that the thread asks of the library, so that its block is allocated here. */
static void *call_on_thread(void *user)
{
    struct thread_call *c = user;
    uintptr_t offset;

    cleared = c->kind->width;
    offset = c->kind->call(&c->in, &c->out, c->pair);
    c->got = (char *)__builtin_thread_pointer() + offset;
    /* An address of this thread means nothing to others. */
    c->got = (char *)(uintptr_t)(c->got[0] * 100 + c->got[1] * 10 + c->got[2]);
    return NULL;
}

static void want_preserved(const struct kind *k, const struct loaded *l)
{
    static struct thread_call c;
    pthread_t thread;

    memset(&c, 0, sizeof c);
    was_cleared = false;
    c.kind = k;
    assert_true(exti__tls_descriptor_make(l->module, 0, c.pair));
    if (k->old)
        make_old(c.pair);
    for (size_t i = 0; i < k->vectors; i++)
        for (size_t b = 0; b < k->width; b++)
            c.in.vector[i][b] = (uint8_t)(i * 7 + b * 3 + 1);
    for (size_t i = 0; i < k->numbers; i++)
        c.in.number[i] = UINT64_C(0x0101010101010101) * (i + 1);
    assert_int_equal(pthread_create(&thread, NULL, call_on_thread, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal((uintptr_t)c.got, 123);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(was_cleared || test_under_valgrind());
#endif
    assert_memory_equal(c.in.number, c.out.number, sizeof c.in.number);
    assert_memory_equal(c.in.vector, c.out.vector, sizeof c.in.vector);
}

static void a_call_preserves_all_registers(void **state)
{
    struct loaded l = load_library(*state);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (has_registers(i)) {
            print_message("%s\n", kinds[i].name);
            want_preserved(&kinds[i], &l);
        }
}

static void a_descriptor_leads_to_its_offset(void **state)
{
    static const int offsets[] = {0, 1, 69999, -8};
    struct loaded l = load_library(*state);
    uintptr_t pair[2];

    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        assert_true(exti__tls_descriptor_make(l.module, (uintptr_t)(intptr_t)offsets[i], pair));
        assert_ptr_equal((char *)__builtin_thread_pointer() + exti__tls_descriptor_call(pair),
                         l.at(0) + offsets[i]);
    }
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    uintptr_t pair[2] = {1, 2};

    (void)state;
    assert_false(exti__tls_descriptor_make((size_t)1 << 24, 0, pair));
    assert_false(exti__tls_descriptor_make(1, (uintptr_t)1 << 39, pair));
    assert_false(exti__tls_descriptor_make(1, (uintptr_t)0 - ((uintptr_t)1 << 39) - 1, pair));
    assert_int_equal(pair[0], 1);
    assert_int_equal(pair[1], 2);
    assert_true(exti__tls_descriptor_make(((size_t)1 << 24) - 1, ((uintptr_t)1 << 39) - 1, pair));
    assert_true(exti__tls_descriptor_make(1, (uintptr_t)0 - ((uintptr_t)1 << 39), pair));
}

#else

static void no_descriptor_is_made_for_this_machine(void **state)
{
    uintptr_t pair[2];

    (void)state;
    assert_false(exti__tls_descriptor_make(1, 0, pair));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__) || (defined(__aarch64__) && defined(__LP64__))
        exti_test(a_call_preserves_all_registers),
        exti_test(a_descriptor_leads_to_its_offset),
        exti_test(numbers_that_do_not_fit_are_refused),
#else
        cmocka_unit_test(no_descriptor_is_made_for_this_machine),
#endif
    };

    return cmocka_run_group_tests_name("process/tls_descriptor", tests, NULL, NULL);
}

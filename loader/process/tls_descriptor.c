#include "loader/process/tls_descriptor.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* A descriptor's function must preserve all registers but %rax, vector registers included, but
 * __tls_get_addr may allocate, and then uses whatever memcpy and malloc use.
 *
 * The argument is in the pair's second word: the module's number in the upper 24 bits, the offset
 * in the lower 40.  `area` bytes, a multiple of 64, hold the saved state; behind it is the
 * structure that __tls_get_addr takes. */
#define RESOLVER(name, area, save, restore)                                                        \
    ".text\n"                                                                                      \
    ".p2align 4\n"                                                                                 \
    ".globl " name "\n"                                                                            \
    ".hidden " name "\n"                                                                           \
    ".type " name ", @function\n" name ":\n"                                                       \
    ".cfi_startproc\n"                                                                             \
    "endbr64\n"                                                                                    \
    "pushq %rbp\n"                                                                                 \
    ".cfi_adjust_cfa_offset 8\n"                                                                   \
    ".cfi_rel_offset %rbp, 0\n"                                                                    \
    "movq %rsp, %rbp\n"                                                                            \
    ".cfi_def_cfa_register %rbp\n"                                                                 \
    "pushq %rdi\n"                                                                                 \
    "pushq %rsi\n"                                                                                 \
    "pushq %rdx\n"                                                                                 \
    "pushq %rcx\n"                                                                                 \
    "pushq %r8\n"                                                                                  \
    "pushq %r9\n"                                                                                  \
    "pushq %r10\n"                                                                                 \
    "pushq %r11\n"                                                                                 \
    "movq 8(%rax), %rdi\n"                                                                         \
    "movq %rdi, %rsi\n"                                                                            \
    "shrq $40, %rdi\n"                                                                             \
    "shlq $24, %rsi\n"                                                                             \
    "sarq $24, %rsi\n"                                                                             \
    "subq $" area " + 64, %rsp\n"                                                                  \
    "andq $-64, %rsp\n"                                                                            \
    "movq %rdi, " area "(%rsp)\n"                                                                  \
    "movq %rsi, " area " + 8(%rsp)\n" save "leaq " area "(%rsp), %rdi\n"                           \
    "call __tls_get_addr@PLT\n"                                                                    \
    "subq %fs:0, %rax\n"                                                                           \
    "movq %rax, %rsi\n" restore "movq %rsi, %rax\n"                                                \
    "leaq -64(%rbp), %rsp\n"                                                                       \
    "popq %r11\n"                                                                                  \
    "popq %r10\n"                                                                                  \
    "popq %r9\n"                                                                                   \
    "popq %r8\n"                                                                                   \
    "popq %rcx\n"                                                                                  \
    "popq %rdx\n"                                                                                  \
    "popq %rsi\n"                                                                                  \
    "popq %rdi\n"                                                                                  \
    "popq %rbp\n"                                                                                  \
    ".cfi_def_cfa %rsp, 8\n"                                                                       \
    "ret\n"                                                                                        \
    ".cfi_endproc\n"                                                                               \
    ".size " name ", . - " name "\n"

/* x87, SSE, AVX, the three parts of AVX-512, and the general registers of APX.  Not the tiles of
 * AMX, which are large and belong to no C library. */
#define STATE_PARTS 0x800e7
#define STATE_AREA 3072
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* Intel SDM, XRSTOR: the header behind the first 512 bytes must be zero where XSAVE does not write
 * it. */
__asm__(RESOLVER("exti__tls_resolve_xsave", TEXT(STATE_AREA),
                 "xorl %edx, %edx\n"
                 "movq %rdx, 512(%rsp)\n"
                 "movq %rdx, 520(%rsp)\n"
                 "movq %rdx, 528(%rsp)\n"
                 "movq %rdx, 536(%rsp)\n"
                 "movq %rdx, 544(%rsp)\n"
                 "movq %rdx, 552(%rsp)\n"
                 "movq %rdx, 560(%rsp)\n"
                 "movq %rdx, 568(%rsp)\n"
                 "movl $" TEXT(STATE_PARTS) ", %eax\n"
                                            "xsave64 (%rsp)\n",
                 "xorl %edx, %edx\n"
                 "movl $" TEXT(STATE_PARTS) ", %eax\n"
                                            "xrstor64 (%rsp)\n")
        /* For processors without XSAVE, which have no state beyond SSE. */
        RESOLVER("exti__tls_resolve_fxsave", "512", "fxsave64 (%rsp)\n", "fxrstor64 (%rsp)\n"));

void exti__tls_resolve_xsave(void);
void exti__tls_resolve_fxsave(void);

/* Intel SDM, CPUID leaf 0DH: each part's size and offset.  Whether XSAVE writes them all inside of
 * STATE_AREA. */
static bool state_fits(void)
{
    unsigned size, offset, c, d;

    for (unsigned i = 2; i < 32; i++)
        if (STATE_PARTS >> i & 1 && __get_cpuid_count(13, i, &size, &offset, &c, &d) && size &&
            (offset > STATE_AREA || size > STATE_AREA - offset))
            return false;
    return true;
}

static uintptr_t find_resolver(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return (uintptr_t)exti__tls_resolve_fxsave;
    return state_fits() ? (uintptr_t)exti__tls_resolve_xsave : 0;
}

/* The convention preserves all registers but the result, but glibc's function for x86-64 did not
 * preserve vector registers until 2.40 (bug 31372), nor does it align the stack. */
uintptr_t exti__tls_descriptor_call(const uintptr_t pair[2])
{
    uintptr_t value = (uintptr_t)pair;

    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "subq $128, %%rsp\n\t" /* the red zone */
                     "andq $-64, %%rsp\n\t"
                     "call *(%%rax)\n\t"
                     "movq %%rbx, %%rsp"
                     : "+a"(value)
                     :
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                       "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
    return value;
}

#elif defined(__aarch64__) && defined(__LP64__)

/* A descriptor's function must preserve all registers but x0 and x30.  Compilers that use SVE do
 * not expect its predicates, nor more than 128 bits of a vector, to be preserved.  The argument is
 * in the pair's second word: the module's number in the upper 24 bits, the offset in the lower
 * 40. */
__asm__(".text\n"
        ".macro exti__pairs insn\n"
        "\\insn x1, x2, [sp, #16]\n"
        "\\insn x3, x4, [sp, #32]\n"
        "\\insn x5, x6, [sp, #48]\n"
        "\\insn x7, x8, [sp, #64]\n"
        "\\insn x9, x10, [sp, #80]\n"
        "\\insn x11, x12, [sp, #96]\n"
        "\\insn x13, x14, [sp, #112]\n"
        "\\insn x15, x16, [sp, #128]\n"
        "\\insn x17, x18, [sp, #144]\n"
        "\\insn q0, q1, [sp, #176]\n"
        "\\insn q2, q3, [sp, #208]\n"
        "\\insn q4, q5, [sp, #240]\n"
        "\\insn q6, q7, [sp, #272]\n"
        "\\insn q8, q9, [sp, #304]\n"
        "\\insn q10, q11, [sp, #336]\n"
        "\\insn q12, q13, [sp, #368]\n"
        "\\insn q14, q15, [sp, #400]\n"
        "\\insn q16, q17, [sp, #432]\n"
        "\\insn q18, q19, [sp, #464]\n"
        "\\insn q20, q21, [sp, #496]\n"
        "\\insn q22, q23, [sp, #528]\n"
        "\\insn q24, q25, [sp, #560]\n"
        "\\insn q26, q27, [sp, #592]\n"
        "\\insn q28, q29, [sp, #624]\n"
        "\\insn q30, q31, [sp, #656]\n"
        ".endm\n"
        ".p2align 4\n"
        ".globl exti__tls_resolve\n"
        ".hidden exti__tls_resolve\n"
        ".type exti__tls_resolve, %function\n"
        "exti__tls_resolve:\n"
        ".cfi_startproc\n"
        "hint #34 // bti c\n"
        "sub sp, sp, #688\n"
        ".cfi_def_cfa_offset 688\n"
        "stp x29, x30, [sp]\n"
        ".cfi_offset x29, -688\n"
        ".cfi_offset x30, -680\n"
        "mov x29, sp\n"
        "exti__pairs stp\n"
        "ldr x2, [x0, #8]\n"
        "lsr x1, x2, #40\n"
        "sbfx x2, x2, #0, #40\n"
        "stp x1, x2, [sp, #160]\n"
        "add x0, sp, #160\n"
        "bl __tls_get_addr\n"
        "mrs x1, tpidr_el0\n"
        "sub x0, x0, x1\n"
        "exti__pairs ldp\n"
        "ldp x29, x30, [sp]\n"
        "add sp, sp, #688\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size exti__tls_resolve, . - exti__tls_resolve\n"
        ".purgem exti__pairs\n");

void exti__tls_resolve(void);

static uintptr_t find_resolver(void)
{
    return (uintptr_t)exti__tls_resolve;
}

uintptr_t exti__tls_descriptor_call(const uintptr_t pair[2])
{
    register uintptr_t value __asm__("x0") = (uintptr_t)pair;

    __asm__ volatile("ldr x1, [x0]\n\t"
                     "blr x1"
                     : "+r"(value)
                     :
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
                       "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
                       "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                       "v28", "v29", "v30", "v31", "memory", "cc");
    return value;
}

#elif defined(__i386__)

static uintptr_t find_resolver(void)
{
    return 0;
}

uintptr_t exti__tls_descriptor_call(const uintptr_t pair[2])
{
    uintptr_t value = (uintptr_t)pair;

    __asm__ volatile("movl %%esp, %%edi\n\t"
                     "andl $-64, %%esp\n\t"
                     "call *(%%eax)\n\t"
                     "movl %%edi, %%esp"
                     : "+a"(value)
                     :
                     : "ecx", "edx", "edi", "memory", "cc");
    return value;
}

#elif defined(__riscv)

static uintptr_t find_resolver(void)
{
    return 0;
}

/* RISC-V psABI, "TLS Descriptors": the link register is t0. */
uintptr_t exti__tls_descriptor_call(const uintptr_t pair[2])
{
    register uintptr_t value __asm__("a0") = (uintptr_t)pair;

    __asm__ volatile("ld t1, 0(a0)\n\t"
                     "jalr t0, t1"
                     : "+r"(value)
                     :
                     : "t0", "t1", "memory");
    return value;
}

#else
#error "how this machine calls TLS descriptors is not known"
#endif

bool exti__tls_descriptor_make(size_t module, uintptr_t offset, uintptr_t pair[2])
{
    const int64_t signed_offset = (int64_t)offset, most = INT64_C(1) << 39;
    const uintptr_t resolver = find_resolver();

    if (!resolver || module >> 23 >> 1 || signed_offset >= most || signed_offset < -most)
        return false;
    pair[0] = resolver;
    pair[1] = (uintptr_t)((uint64_t)module << 40 | ((uint64_t)offset & ((UINT64_C(1) << 40) - 1)));
    return true;
}

/* A library that tests itself: self_test() returns 0, or the number of the first failed check.  It
 * has everything that a careless rewrite breaks: zeroed data, thread-locals, relocated tables,
 * exceptions, constructors, its own dynamic section. */
#include <dlfcn.h>
#include <link.h>

#include <stdexcept>
#include <string>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

extern "C" {
extern char **environ;
int self_extra_1(void);
int self_extra_2(void);
int self_extra_3(void);
int self_test(void);
extern int self_counter;
}

namespace {

int constructed;
struct at_start {
    at_start() { constructed = 77; }
} const at_start_now;

char zeros[300];
thread_local int tls_value = 5;
thread_local int tls_zero[64];

struct base {
    virtual ~base() {}
    virtual int kind() const { return 1; }
};
struct derived : base {
    int kind() const override { return 2; }
};

__attribute__((noinline)) void thrower(int how)
{
    if (how == 1)
        throw std::runtime_error("one");
    throw how;
}

bool exceptions_work()
{
    try {
        thrower(1);
    } catch (const std::runtime_error &e) {
        if (std::string(e.what()) != "one")
            return false;
    }
    try {
        thrower(2);
    } catch (int n) {
        return n == 2;
    }
    return false;
}

bool is_zero(const char *p, size_t n)
{
    while (n && !*p)
        p++, n--;
    return !n;
}

/* The loader and the library must agree about the library. */
int find_self(struct dl_phdr_info *info, size_t, void *found)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) != 0 && info->dlpi_name &&
            *static_cast<std::string *>(found) == info->dlpi_name)
            return 1;
    return 0;
}

typedef int (*fn)(void);
fn const table[] = {self_extra_1, self_extra_2, self_extra_3};
const char *const names[] = {"zero", "one", "two"};

} // namespace

extern "C" {

int self_counter;

int self_extra_1(void)
{
    return 1;
}

int self_extra_2(void)
{
    return 2;
}

int self_extra_3(void)
{
    return 3;
}

int self_test(void)
{
    Dl_info info;
    base *b = new derived;
    int kind = b->kind(), sum = 0;

    delete b;
    if (constructed != 77)
        return 1;
    if (!is_zero(zeros, sizeof zeros) || self_counter)
        return 2;
    if (tls_value != 5 || tls_zero[0] || tls_zero[63])
        return 3;
    if (kind != 2)
        return 4;
    if (!exceptions_work())
        return 5;
    for (fn f : table)
        sum += f();
    if (sum != 6 || names[2][0] != 't')
        return 6;
    if (!dladdr(reinterpret_cast<void *>(self_test), &info) || !info.dli_sname)
        return 7;
    std::string name = info.dli_fname;
    if (!dl_iterate_phdr(find_self, &name))
        return 8;
    if (!environ)
        return 9;
    if (_DYNAMIC[0].d_tag <= 0)
        return 10;
    self_counter++;
    zeros[7] = 1;
    tls_zero[63] = 1;
    return 0;
}
}

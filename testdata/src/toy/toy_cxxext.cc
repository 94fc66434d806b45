/* A C++ toy extension: unique symbols, thread_local, exceptions, an API reference. */
#include <stdexcept>
#include <string>

#include "toy.h"
#include "toy_cxx.h"

namespace {
struct per_thread {
    std::string text = "fresh";
    int value = 1;
};
thread_local per_thread mine;
} // namespace

inline thread_local int cxx_inline_tls = 11;

extern "C" {

int *cxxext_inline(void)
{
    return &cxx_inline::total;
}

int *cxxext_function_static(void)
{
    return &cxx_function_static();
}

int *cxxext_template(void)
{
    return cxx_table<int>::slots;
}

int *cxxext_thread_local(void)
{
    return &mine.value;
}

int *cxxext_inline_tls(void)
{
    return &cxx_inline_tls;
}

int cxxext_next(void)
{
    return toy_next();
}

int cxxext_throw_and_catch(void)
{
    try {
        throw std::runtime_error("toy");
    } catch (const std::exception &e) {
        return std::string(e.what()) == "toy";
    }
}
}

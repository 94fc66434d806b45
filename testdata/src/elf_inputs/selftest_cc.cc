// The C++ half: exceptions, guarded statics, a unique symbol, nontrivial constructors.
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int selftest_cc();

namespace
{
struct guard {
    int *n;
    ~guard()
    {
        ++*n;
    }
};

std::vector<std::string> words{"alpha", "beta"};

[[gnu::noinline]] int thrower(int n, int *unwound)
{
    guard g{unwound};
    if (n == 0)
        throw std::runtime_error("thrown");
    return thrower(n - 1, unwound) + 1;
}
} // namespace

template <class T> struct counter {
    static T next()
    {
        static T n = 100; // STB_GNU_UNIQUE
        return ++n;
    }
};

extern "C" int selftest_cc()
{
    int unwound = 0;

    if (words.size() != 2 || words[1] != "beta")
        return 20;
    try {
        thrower(5, &unwound);
        return 21;
    } catch (const std::exception &e) {
        if (std::string(e.what()) != "thrown" || unwound != 6)
            return 22;
    }
    return counter<int>::next() == 101 ? 0 : 23;
}

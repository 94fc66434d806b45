// Everything that C++ requires to be unique in a process: inline statics, statics of inline
// functions, virtual tables and type information.  Also exceptions, for their tables.
static int check_cxx();
#define EXT_CHECK check_cxx()
#include "ext.h"

namespace std
{
class type_info
{
  public:
    virtual ~type_info();
    const char *name;
};
} // namespace std
template <class T> struct counter {
    static int n;
};
template <class T> int counter<T>::n;

inline int &local()
{
    static int *n = (int *)malloc(sizeof *n);
    return *n;
}

struct shape {
    virtual ~shape()
    {
    }
    virtual int sides()
    {
        return 0;
    }
};

struct square : shape {
    int sides() override
    {
        return 4;
    }
};

extern "C" void ext_throw(int n);
void ext_throw(int n)
{
    if (n > 3)
        throw n;
}

struct guard {
    ~guard()
    {
        counter<char>::n++;
    }
};

extern "C" int ext_catch(int n);
int ext_catch(int n)
{
    guard g;

    try {
        ext_throw(n);
    } catch (int caught) {
        return caught;
    }
    return 0;
}

__attribute__((noinline)) static shape *make(int n)
{
    if (n)
        return new square;
    return new shape;
}

static int check_cxx()
{
    shape *s = make(1), *t = make(0);
    const void *table;

    MUST(s->sides() == 4 && t->sides() == 0);
    memcpy(&table, s, sizeof table);
    // In a virtual table the word before the first function points to the type information.
    MUST(((const void *const *)table)[-1] == (const void *)&typeid(square));
    delete s;
    delete t;
    MUST(ext_catch(1) == 0);
    return 0;
}

int ext_own(void)
{
    if (!counter<long>::n)
        local() = 0;
    // Both ways must give the same number, 1 or 2; otherwise they are shared differently.
    local()++;
    return ++counter<long>::n == local() ? local() : -1;
}

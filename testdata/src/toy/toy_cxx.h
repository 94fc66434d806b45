/* The C++ toy: inline statics and templates, which the compiler makes unique in the process. */
#ifndef TOY_CXX_H
#define TOY_CXX_H

struct cxx_inline {
    static inline int total = 0;
};

inline int &cxx_function_static()
{
    static int value = 0;
    return value;
}

template <class T> struct cxx_table {
    static int slots[4];
};
template <class T> int cxx_table<T>::slots[4];

#endif

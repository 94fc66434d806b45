/* A python that is linked to its shared libpython, as those are that a distribution builds in one way only.  Debian's
 * python3 is not, and runs the same program in less time than the library does. */
#include <Python.h>

int main(int argc, char **argv)
{
    return Py_BytesMain(argc, argv);
}

#include <extisolate/python.h>

const char *extipy_code_name(int code)
{
    switch (code) {
    case EXTIPY_E_CLOSED:
        return "EXTIPY_E_CLOSED";
    case EXTIPY_E_PLACE:
        return "EXTIPY_E_PLACE";
    case EXTIPY_E_RAISED:
        return "EXTIPY_E_RAISED";
    default:
        return exti_code_name(code);
    }
}

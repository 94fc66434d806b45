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
    case EXTIPY_E_CANCELLED:
        return "EXTIPY_E_CANCELLED";
    case EXTIPY_E_TIMEOUT:
        return "EXTIPY_E_TIMEOUT";
    case EXTIPY_E_STATE:
        return "EXTIPY_E_STATE";
    case EXTIPY_E_EXITED:
        return "EXTIPY_E_EXITED";
    default:
        return exti_code_name(code);
    }
}

/* What the calling thread allocates after __lsan_disable() is no leak to the address sanitizer. */
#ifndef LEAKS_H
#define LEAKS_H

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable() (void)0
#endif

#endif

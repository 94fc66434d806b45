/* What the edits make of names of libraries, as the public header defines it. */
#ifndef PE_CHECK_PE_CHECK_EXPECT_H
#define PE_CHECK_PE_CHECK_EXPECT_H

#include "pe/check/pe_check_state.h"

/* The name in the copy for a library called `name`; `name` itself if nothing renames it. */
const char *exti__pe_renamed(const struct pe_check *c, const char *name);
/* Whether a reference to library `was` may be one to `now` in the copy. */
bool exti__pe_follows(const struct pe_check *c, const char *was, const char *now);
/* The same for forwarders, "library.symbol". */
bool exti__pe_forwarder_follows(const struct pe_check *c, const char *was, const char *now);
/* Whether the loader takes the two names for one library. */
bool exti__pe_same_library(const char *a, const char *b);
/* Whether edits may change a reference to library `name`. */
bool exti__pe_may_rename(const struct pe_check *c, const char *name);
/* Copies the library's name out of a forwarder.  False without one, or if it does not fit. */
bool exti__pe_forwarder_library(const char *forwarder, char *out, size_t cap);

#endif

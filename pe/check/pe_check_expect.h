/* What the edits make of the names of libraries, by the words of the public header. */
#ifndef PE_CHECK_PE_CHECK_EXPECT_H
#define PE_CHECK_PE_CHECK_EXPECT_H

#include "pe/check/pe_check_state.h"

/* What a library of that name has to be called in the copy; `name` itself when nothing renames it.
 * */
const char *exti__pe_renamed(const struct pe_check *c, const char *name);
/* Whether a reference to library `was` may now name `now`. */
bool exti__pe_follows(const struct pe_check *c, const char *was, const char *now);
/* The same for whole forwarders. */
bool exti__pe_forwarder_follows(const struct pe_check *c, const char *was, const char *now);
/* Whether the loader takes the two names for one library. */
bool exti__pe_same_library(const char *a, const char *b);
/* Whether edits may change a reference to library `name`. */
bool exti__pe_may_rename(const struct pe_check *c, const char *name);
/* The name of the library that a forwarder names, with its length. */
bool exti__pe_forwarder_library(const char *forwarder, char *out, size_t cap);

#endif

/* Changes forwarders to renamed libraries. */
#ifndef PE_EDIT_PE_FORWARD_H
#define PE_EDIT_PE_FORWARD_H

#include "pe/edit/pe_edit.h"

/* Collects the forwarders and their new texts, and adds a rename for each that changes. */
int exti__pe_edit_forwarders(struct pe_edit *e, struct exti_error *err);
int exti__pe_move_exports(struct pe_edit *e, struct exti_error *err); /* fills e->moved */
int exti__pe_settle_exports(struct pe_edit *e,
                            struct exti_error *err); /* after e->blob_rva is set */

#endif

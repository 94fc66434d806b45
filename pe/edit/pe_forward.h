/* Forwarders. */
#ifndef PE_EDIT_PE_FORWARD_H
#define PE_EDIT_PE_FORWARD_H

#include "pe/edit/pe_edit.h"

int exti__pe_edit_forwarders(struct pe_edit *e, struct exti_error *err);
int exti__pe_move_exports(struct pe_edit *e, struct exti_error *err);   /* lays `moved` out */
int exti__pe_settle_exports(struct pe_edit *e, struct exti_error *err); /* once blob_rva is known */

#endif

/* Copies made by pattern.  The copies of one file in contexts that are set up alike differ in
 * nothing but the contexts' names.  Once two were planned, each by itself, and found to be the same
 * but for that, the copy of a further context of this process is written without reading, planning
 * and checking the file again.  For lean copies in folders that this process has made, on ELF
 * systems; others are planned each. */
#ifndef LOADER_STORE_STORE_PATTERN_H
#define LOADER_STORE_STORE_PATTERN_H

#include "loader/rewrite/rewrite.h"
#include "loader/store/store_needs.h"

/* What is known lives while a store holds it, from its opening to its end, and after that for the
 * process's next ones, unless it takes much memory. */
void exti__patterns_hold(const struct exti_store *s);
void exti__patterns_release(const struct exti_store *s);

/* Call it once, before stores that load copies are opened; 0 or an errno value. */
int exti__patterns_prepare(void);

/* Takes over the folder and the copies of a store that is being closed, whose files nobody has
 * mapped, if copies of other stores can be made of them.  False: there is nothing to take. */
bool exti__patterns_give_files(struct exti_store *s);

/* One who plans a copy, as others may wait for what they learn from that. */
struct exti_pattern_turn {
    void *known;
};

/* Writes the copy if there is a pattern of it and the context has none yet, and gives its entry,
 * which is to be recorded.  False: plan it, whatever has failed here, and say so when that has
 * ended in any way.  Where two other contexts plan the same file, waits for them, but not for long.
 * The store's mutex is held. */
bool exti__pattern_use(struct exti_store *s, const struct exti_copy_request *r,
                       struct exti_entry *out, struct exti_pattern_turn *turn);
void exti__pattern_planned(const struct exti_pattern_turn *turn);

/* Notes a copy with its id that was planned, before it is written; its entry lacks what only the
 * file tells. */
void exti__pattern_learn(const struct exti_store *s, const struct exti_copy_request *r,
                         const char *id, const struct exti_entry *e,
                         const struct exti_rewritten *copy);

#endif

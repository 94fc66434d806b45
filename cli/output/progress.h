/* A progress bar on stderr. */
#ifndef CLI_OUTPUT_PROGRESS_H
#define CLI_OUTPUT_PROGRESS_H

#include <stddef.h>

struct cli_progress;

/* Starts a bar, painted from one second on by a thread of its own; one at a time.  `what` must
 * outlive it; `total` 0 means the amount is unknown.  Returns NULL when stderr is not a terminal or
 * no thread can be started; all functions below accept NULL, from any thread. */
struct cli_progress *cli_progress_start(const char *what, size_t total);
void cli_progress_step(struct cli_progress *p, size_t done, const char *name);
/* Takes the bar off the screen while something else is printed, and allows it back. */
void cli_progress_hide(struct cli_progress *p);
void cli_progress_show(struct cli_progress *p);
/* Removes and frees the bar. */
void cli_progress_end(struct cli_progress *p);

#endif

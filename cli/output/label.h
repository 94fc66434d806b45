/* The "  name      value" lines in which `inspect` describes a file. */
#ifndef CLI_OUTPUT_LABEL_H
#define CLI_OUTPUT_LABEL_H

/* Prints the name alone, padded; "" continues the value above. */
void cli_label(const char *name);

/* Prints a whole line; a NULL `text` prints `none`, dimmed. */
void cli_line(const char *name, const char *text, const char *none);

#endif

/* Paths as text, with the separators of this system. */
#ifndef CLI_OS_PATH_H
#define CLI_OS_PATH_H

/* The last part of `path`, within it; "" if it ends in a separator. */
const char *cli_base_name(const char *path);

/* Both return a string that the caller frees, NULL when out of memory. */
char *cli_folder_of(const char *path); /* "." for a plain name */
char *cli_join(const char *dir, const char *name);

#endif

/* A file on Windows has an owner and a list of who may do what, which groups, inheritance and
 * privileges take part in.  Folders of a user's profile are that user's alone by default, but those
 * directly below a drive are writable by all users.  To tell these apart takes
 * GetEffectiveRightsFromAcl for every account that could be meant: nothing of that is done yet, so
 * everything is trusted. */
#include "base/os/fs_owner.h"

#include "base/os/fs_win32.h"

int exti__fs_check_folder(const char *path, struct exti_error *err)
{
    (void)path;
    (void)err;
    return 0;
}

int exti__fs_check_file(const char *path, struct exti_error *err)
{
    (void)path;
    (void)err;
    return 0;
}

int exti__fs_own_id(const char *path, struct exti_file_id *out, bool *trusted,
                    struct exti_error *err)
{
    int rc = exti__fs_id(path, out, err);

    if (!rc)
        *trusted = true;
    return rc;
}

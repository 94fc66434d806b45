/* Runs code of Mach-O files:
 *
 *   macho_load [--main PROGRAM] ITEM...
 *       FILE        opens FILE, for the symbols that follow
 *       -local FILE the same with RTLD_LOCAL
 *       :SYMBOL     calls int SYMBOL(void) and prints what it gives
 *       @SYMBOL     the same in a new thread
 *       +           runs the initialisers that FILE withholds from dyld */
#include "tests/macho_inputs/loader/load.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef int (*int_fn)(void);

static void *call(void *symbol)
{
    int_fn f;

    memcpy(&f, symbol, sizeof f);
    printf("%d\n", f());
    fflush(stdout);
    return NULL;
}

static void call_symbol(struct image *im, const char *symbol, bool in_thread)
{
    uint8_t *address;
    pthread_t thread;
    bool weak_def;

    if (!im || !image_exports(im, symbol, true, &address, &weak_def))
        die("%s: does not export %s", im ? im->path : "nothing opened", symbol);
    if (!in_thread) {
        call(&address);
    } else if (pthread_create(&thread, NULL, call, &address) != 0 ||
               pthread_join(thread, NULL) != 0) {
        die("no thread");
    }
}

static void run_item(char **item)
{
    struct image *im = NULL, *nothing = take_memory(sizeof *nothing);

    nothing->path = "the program";
    if (*item && strcmp(*item, "--main") == 0) {
        open_image(*++item, false, true);
        item++;
    } else {
        main_image = nothing;
        loaded[loaded_count++] = nothing;
        loaded[loaded_count++] = system_library("/usr/lib/libSystem.B.dylib");
    }
    for (; *item; item++) {
        if (**item == ':' || **item == '@')
            call_symbol(im, *item + 1, **item == '@');
        else if (strcmp(*item, "+") == 0 && im)
            initialise_withheld(im);
        else if (strcmp(*item, "-local") == 0 && item[1])
            im = open_image(*++item, true, false);
        else
            im = open_image(*item, false, false);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("usage: macho_load [--main PROGRAM] {[-local] FILE | :SYMBOL | @SYMBOL | +}...");
    run_item(argv + 1);
    return 0;
}

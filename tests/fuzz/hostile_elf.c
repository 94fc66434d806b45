/* Writes the handmade files of testdata/corpus/elf: notes that end past the file, and sections that
 * contradict the dynamic section.  make_corpus.sh runs it. */
#include "tests/fuzz/hostile.h"
#include "tests/unit/elf/elf_toy.h"

enum { PHDR = 56, SHDR = 64, NOTE = 3 };

static struct elf_toy t;

static size_t header(size_t i, size_t field)
{
    return t.phdr + i * PHDR + field;
}

/* The toy, edited with names that fit only into a new segment. */
static void write_input(const char *name)
{
    hostile_write(name, 1, t.b, t.n);
}

static void put_note(uint64_t offset, uint64_t size)
{
    toy_put(&t, header(NOTE, 8), 8, offset);
    toy_put(&t, header(NOTE, 32), 8, size);
    toy_put(&t, header(NOTE, 40), 8, size);
}

static void notes(void)
{
    elf_toy_make(&t, true, false); /* ends one byte before it starts */
    put_note(t.note, UINT64_MAX);
    write_input("note-wraps");
    elf_toy_make(&t, true, false); /* among zeros behind the program headers */
    memset(t.b + t.note, 0, t.sym - t.note);
    put_note(header(TOY_PHDRS, 8), UINT64_MAX);
    write_input("note-wraps-in-gap");
    elf_toy_make(&t, true, false);
    put_note(t.note, (uint64_t)INT64_MAX);
    write_input("note-far");
}

static void sections(void)
{
    elf_toy_make(&t, true, false);
    toy_put(&t, t.shdr + SHDR + 40, 4, 2);
    write_input("toy-linked");
    toy_put(&t, t.shdr + 2 * SHDR + 16, 8, t.str + 0x10);
    write_input("dynstr-elsewhere");
    elf_toy_make(&t, true, false);
    toy_put(&t, t.shdr + SHDR + 16, 8, TOY_DATA_VADDR + 0x10);
    write_input("dynamic-elsewhere");
}

int main(int argc, char **argv)
{
    hostile_begin(argc, argv);
    notes();
    sections();
    return 0;
}

# extisolate.  `make help` lists the targets; README.md and CONTRIBUTING.md say more.
#
# Variants live side by side and never share objects: the plain one in build/, others in
# build/<variant>, chosen by CC=, SAN= and COV=.  BUILD= names another folder than build/.
# CFLAGS, CPPFLAGS and LDFLAGS are the user's.

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

-include config.mak
BUILD ?= build
# By one name, as it is the target of the dependency files.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
# The settings of one build folder, which scripts/manylinux.sh writes.
-include $(BUILD)/config.mak

# ---- version: the public header is its one home ----------------------------------------------

HEADER := include/extisolate.h
MAP := loader/extisolate.map
version_part = $(shell sed -n 's/^\#define EXTI_VERSION_$(1) \([0-9]*\)$$/\1/p' $(HEADER))
MAJOR := $(call version_part,MAJOR)
MINOR := $(call version_part,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call version_part,PATCH)
ifeq ($(shell grep -c '^EXTI_$(MAJOR)\.$(MINOR) {' $(MAP)),0)
$(error $(MAP) has no node EXTI_$(MAJOR).$(MINOR), the version in $(HEADER))
endif

# ---- settings ------------------------------------------------------------------------------------

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/extisolate
DESTDIR ?=
INSTALL ?= install
PKG_CONFIG ?= pkg-config
PYTHON ?= python3
CFLAGS ?= -O2 -g
FUZZ_TIME ?= 60
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

# Tests call LLVM's programs by their plain names.
ifndef LLVM_BIN
export LLVM_BIN := $(shell scripts/llvm.sh)
export PATH := $(if $(LLVM_BIN),$(LLVM_BIN):)$(PATH)
endif
FUZZ_CC ?= $(or $(wildcard $(LLVM_BIN)/clang),clang)
CLANG_FORMAT ?= $(call first_of,clang-format-16 clang-format)
first_of = $(or $(firstword $(foreach t,$(1),$(shell command -v $(t) 2>/dev/null))),$(firstword $(1)))

# The system that is built for, as uname -s names it; Windows, by mingw.
SYSTEM ?= $(shell uname -s)
on_darwin := $(filter Darwin,$(SYSTEM))
on_windows := $(filter Windows,$(SYSTEM))

# Lazy, so that `make deps` and `make clean` work before the packages are there.
LIBELF_CFLAGS ?= $(shell $(PKG_CONFIG) --cflags libelf)
LIBELF_LIBS ?= $(shell $(PKG_CONFIG) --libs libelf)
JANSSON_CFLAGS ?= $(shell $(PKG_CONFIG) --cflags jansson)
JANSSON_LIBS ?= $(shell $(PKG_CONFIG) --libs jansson)
NETTLE_CFLAGS ?= $(shell $(PKG_CONFIG) --cflags nettle)
NETTLE_LIBS ?= $(shell $(PKG_CONFIG) --libs nettle)
# The Mach-O checker of the tests hashes with another library than what it checks.
LIBCRYPTO_LIBS ?= $(shell $(PKG_CONFIG) --libs libcrypto)
CMOCKA_CFLAGS ?= $(shell $(PKG_CONFIG) --cflags cmocka)
CMOCKA_LIBS ?= $(shell $(PKG_CONFIG) --libs cmocka)

comma := ,
empty :=
space := $(empty) $(empty)
cc_tag := $(if $(filter default,$(origin CC)),,$(filter-out cc,$(notdir $(firstword $(CC)))))
variant := $(subst $(space),-,$(strip $(cc_tag) $(subst $(comma),-,$(SAN)) $(if $(COV),cov)))
B := $(BUILD)$(if $(variant),/$(variant))

# ---- flags ---------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wformat=2
BASE_CPPFLAGS := -iquote . -I include -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
	$(if $(on_darwin),-D_DARWIN_C_SOURCE) \
	$(if $(on_windows),-U_WIN32_WINNT -D_WIN32_WINNT=0x0602 -DWIN32_LEAN_AND_MEAN -DUNICODE)
BASE_CFLAGS := -std=c11 -fvisibility=hidden $(WARNINGS) $(if $(WERROR),-Werror)
san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
cov_flags := $(if $(COV),--coverage -O0 -fprofile-update=atomic)
# What makes the product harder to attack, as far as the compiler takes it; HARDEN= builds without.  Tests
# are not built with it, since some of them take the place of libc's functions.
HARDEN ?= yes
own_flags = $(CPPFLAGS) $(CFLAGS) $(cov_flags)
# Into a file, as zig writes `-.o` where others write /dev/null.
accepted = $(shell o=$$(mktemp) && for f in $(1); do printf '\043include <stdlib.h>\n' | \
	$(CC) -O2 -Werror -U_FORTIFY_SOURCE $$f -x c -c -o "$$o" - >/dev/null 2>&1 && echo "$$f"; done; rm -f "$$o")
# libc's checks need an optimizer; a user's own choice stays; the sanitizers do not see into checked calls.
with_fortify = $(if $(SAN)$(findstring _FORTIFY_SOURCE,$(own_flags))$(filter -O0 -Og,$(own_flags)),,\
	$(filter -O1 -O2 -O3 -Os,$(own_flags)))
# Asked once, and only where something is compiled.
taken_flags = $(eval taken_flags := $(call accepted,-fcf-protection=full -mbranch-protection=standard \
	-fstack-protector-strong -fstack-clash-protection) $(if $(with_fortify),-U_FORTIFY_SOURCE \
	$(firstword $(call accepted,-D_FORTIFY_SOURCE=3 -D_FORTIFY_SOURCE=2))))$(taken_flags)
# On Windows the stack protector and libc's checks need a library of the compiler's.
harden_flags = $(if $(HARDEN),$(if $(on_windows),,$(taken_flags)))
harden_ldflags := $(if $(HARDEN),$(if $(on_darwin)$(on_windows),,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now))
harden_pie := $(if $(HARDEN),$(if $(on_darwin)$(on_windows),,-pie))
with_nettle := $(if $(on_darwin)$(on_windows),,yes)
DEP_CFLAGS = $(LIBELF_CFLAGS) $(if $(with_nettle),$(NETTLE_CFLAGS))
ALL_CFLAGS = $(BASE_CPPFLAGS) $(BASE_CFLAGS) $(DEP_CFLAGS) $(san_flags) $(CPPFLAGS) $(CFLAGS) \
	$(cov_flags)
# On Windows nothing but the system's own libraries is needed at run time.
ALL_LDFLAGS = $(san_flags) $(if $(COV),--coverage $(COUNTED_EXIT)) $(if $(on_windows),-static) $(LDFLAGS)
SYSTEM_LIBS := $(if $(on_windows),-lbcrypt -ladvapi32 -lntdll -lpthread,-ldl -lpthread)
LIBS = $(LIBELF_LIBS) $(if $(with_nettle),$(NETTLE_LIBS)) $(SYSTEM_LIBS)
# By archives the program starts faster, and brings no library of its own into a process of contexts, which
# theirs would have to be told from.  Where not all are here, or with STATIC_DEPS=, by the shared libraries.
STATIC_DEPS ?= $(if $(on_darwin)$(on_windows),,\
	$(patsubst -l%,%,$(shell $(PKG_CONFIG) --static --libs-only-l libelf jansson nettle)))
archive_folders = $(patsubst -L%,%,$(shell $(PKG_CONFIG) --static --libs-only-L libelf jansson nettle))
archives = $(foreach l,$(STATIC_DEPS),$(firstword $(wildcard $(archive_folders:%=%/lib$l.a)) \
	$(shell $(CC) -print-file-name=lib$l.a 2>/dev/null)))
# Asked once: Debian 13's archive of libelf lacks a part of itself.
usable_archives = $(eval usable_archives := $(if $(STATIC_DEPS),$(if $(filter-out /%,$(archives)),,\
	$(shell printf 'int elf_begin(void), elf_end(void);\nint main(void) { return elf_begin() + elf_end(); }\n' | \
	$(CC) -w -x c -o /dev/null - -x none $(archives) $(SYSTEM_LIBS) 2>/dev/null && echo $(archives)))))$(usable_archives)
PROGRAM_LIBS = $(if $(usable_archives),$(usable_archives) $(SYSTEM_LIBS),$(JANSSON_LIBS) $(LIBS))
LIB_FLAGS := $(if $(on_windows),,-fPIC $(if $(on_darwin),,-fno-plt) -DEXTI_API='__attribute__((visibility("default")))')

# Programs whose counts are kept where they end by _exit.
COUNTED_EXIT := $(if $(COV),$(B)/obj/tests/coverage/counted_exit.o)

quote = '$(subst ','\'',$(1))'
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(Q),@printf '  %-7s %s\n' '$(1)' '$(2)')

# ---- sources -------------------------------------------------------------------------------------

# All of the library's rooms, but for what differs between systems.
POSIX_SRCS := $(wildcard base/os/*_posix.c) loader/process/dl_posix.c loader/process/fork_guard_posix.c \
	loader/process/guarded_dl_posix.c loader/process/linkmap_path_posix.c \
	loader/process/run_watched_posix.c \
	loader/load/slot_writer_posix.c \
	loader/interpose/context_pid.c loader/interpose/copy_dlopen.c loader/interpose/dl_calls.c \
	loader/interpose/replacements.c
ELF_SYSTEM_SRCS := base/os/sha256_nettle.c \
	loader/process/constructors_elf.c loader/process/dynamic_elf.c loader/process/gnu_hash_elf.c loader/process/linkmap_elf.c \
	loader/process/program_elf.c loader/process/references_elf.c \
	loader/process/name_filter_elf.c loader/process/original_data_elf.c loader/process/original_pages_elf.c loader/process/provenance_elf.c \
	loader/process/tls_descriptor.c loader/process/tls_reference_elf.c \
	loader/resolve/default_memo.c loader/resolve/elf_kind.c loader/resolve/ld_cache.c \
	loader/resolve/search_elf.c loader/resolve/search_elf_open.c loader/resolve/search_host.c \
	loader/resolve/string_list.c loader/resolve/string_tokens.c \
	loader/store/store_pattern.c loader/store/store_spares.c \
	loader/load/shared_calls.c loader/load/static_tls.c loader/track/context_keys.c loader/track/context_threads.c \
	loader/track/fork_handlers.c loader/track/kept_file.c loader/track/kept_functions.c loader/track/library_locks.c loader/track/lingering.c \
	loader/track/record_locks.c loader/track/still_mapped.c loader/track/thread_description.c \
	loader/track/children.c loader/track/context_end.c loader/track/descriptors.c loader/track/exit_handlers.c \
	loader/track/moment.c loader/track/parked_signals.c loader/track/process_stat.c loader/track/signal_cell.c loader/track/signal_dispatch.c loader/track/signal_hand_over.c \
	loader/track/signal_table.c \
	loader/track/signal_timers.c loader/track/timer_table.c \
	loader/track/streams.c loader/track/thread_objects.c \
	loader/track/context_locale.c loader/track/context_zone.c loader/track/environment.c loader/track/surroundings.c \
	loader/track/directory.c loader/track/helper_thread.c loader/track/home.c loader/interpose/directory_calls.c \
	loader/interpose/path_calls.c \
	loader/track/zone.c loader/track/zone_file.c loader/track/zone_rule.c \
	loader/interpose/child_calls.c loader/interpose/close_calls.c loader/interpose/descriptor_calls.c \
	loader/interpose/end_calls.c loader/interpose/fork_calls.c loader/interpose/iterate_phdr.c \
	loader/interpose/environment_calls.c loader/interpose/exec_calls.c loader/interpose/exec_child.c \
	loader/interpose/locale_calls.c loader/interpose/kept_calls.c loader/interpose/lock_calls.c loader/interpose/shell_calls.c \
	loader/interpose/spawn.c loader/interpose/signal_calls.c loader/interpose/thread_calls.c loader/interpose/time_calls.c \
	loader/interpose/timer_calls.c
DARWIN_SYSTEM_SRCS := base/os/sha256_darwin.c loader/process/constructors_macho.c \
	loader/process/linkmap_macho.c loader/load/reference_target_named.c
WINDOWS_SYSTEM_SRCS := $(wildcard base/os/*win32.c) \
	loader/process/dl_win32.c loader/process/linkmap_pe.c \
	loader/load/slot_writer_win32.c loader/resolve/search_pe_win32.c
# Of two systems.
ELF_OR_DARWIN_SRCS := loader/resolve/search_pe_list.c
ELF_OR_WINDOWS_SRCS := loader/load/reference_target.c
DARWIN_OR_WINDOWS_SRCS := loader/process/name_filter_none.c loader/process/original_pages_none.c loader/process/program_none.c loader/process/provenance_none.c loader/process/tls_reference_none.c loader/resolve/search_elf_none.c \
	loader/store/store_pattern_none.c
SYSTEM_SRCS := $(POSIX_SRCS) $(ELF_SYSTEM_SRCS) $(DARWIN_SYSTEM_SRCS) $(WINDOWS_SYSTEM_SRCS) \
	$(ELF_OR_DARWIN_SRCS) $(ELF_OR_WINDOWS_SRCS) $(DARWIN_OR_WINDOWS_SRCS)
OWN_SYSTEM_SRCS := $(if $(on_windows),$(WINDOWS_SYSTEM_SRCS),$(POSIX_SRCS) $(ELF_OR_DARWIN_SRCS)) \
	$(if $(on_darwin),$(DARWIN_SYSTEM_SRCS),$(ELF_OR_WINDOWS_SRCS)) \
	$(if $(on_darwin)$(on_windows),$(DARWIN_OR_WINDOWS_SRCS),$(ELF_SYSTEM_SRCS))
COMMON_SRCS := $(filter-out $(SYSTEM_SRCS),$(sort $(shell find base elf macho pe loader -name '*.c')))
LIB_SRCS := $(COMMON_SRCS) $(OWN_SYSTEM_SRCS)
RUNTIME_SRCS := $(sort $(shell find runtime -name '*.c'))
CLI_POSIX_SRCS := cli/cmd_run.c cli/find/quirk_env.c cli/os/system_posix.c
CLI_WINDOWS_SRCS := cli/cmd_run_win32.c cli/os/system_win32.c
CLI_SRCS := $(filter-out $(CLI_POSIX_SRCS) $(CLI_WINDOWS_SRCS),$(sort $(shell find cli -name '*.c'))) \
	$(if $(on_windows),$(CLI_WINDOWS_SRCS),$(CLI_POSIX_SRCS))

# `run` needs a POSIX system.
# What `run` has beside the library of contexts: whole programs and their ends.
RUN_SRCS := $(if $(on_windows),,$(addprefix runtime/,builtin.c command.c context.c ending.c importable.c \
	pace.c program.c room.c scratch.c uncaught.c))
PYTHON_SRCS := $(if $(on_windows),,$(filter-out $(RUN_SRCS),$(RUNTIME_SRCS)))
# A library by itself: links between heaps.
LINK_SRCS := $(sort $(wildcard link/*.c))
PROGRAM_SRCS := $(PYTHON_SRCS) $(RUN_SRCS) $(CLI_SRCS)

objs = $(patsubst %.c,$(B)/obj/%.o,$(1))
# loader/resolve/quirks.json as a string.
QUIRKS_SRC := $(B)/quirks_builtin.c
QUIRKS_OBJ := $(B)/obj/loader/resolve/quirks_builtin.o
LIB_OBJS := $(call objs,$(LIB_SRCS)) $(QUIRKS_OBJ)
PYTHON_OBJS := $(call objs,$(PYTHON_SRCS))
LINK_OBJS := $(call objs,$(LINK_SRCS) base/error.c base/mem.c base/opts.c)
RUN_OBJS := $(call objs,$(RUN_SRCS))
CLI_OBJS := $(call objs,$(CLI_SRCS))

# The names of a library: its link, its SONAME and its file.
link_name = lib$(1).$(if $(on_darwin),dylib,so)
soname = $(if $(on_darwin),lib$(1).$(MAJOR).dylib,$(link_name).$(MAJOR))
shared = $(B)/$(if $(on_darwin),lib$(1).$(VERSION).dylib,$(link_name).$(VERSION))

STATIC := $(B)/libextisolate.a
SHARED := $(call shared,extisolate)
# The library of CPython contexts, on top of the other; there is none for Windows.
PYTHON_HEADER := include/extisolate/python.h
PYTHON_MAP := runtime/extisolate-python.map
PYTHON_STATIC := $(if $(on_windows),,$(B)/libextisolate-python.a)
PYTHON_SHARED := $(call shared,extisolate-python)
# The library of links between heaps, which needs neither.
LINK_HEADER := include/extisolate/link.h
LINK_MAP := link/extisolate-link.map
LINK_STATIC := $(B)/libextisolate-link.a
LINK_SHARED := $(call shared,extisolate-link)
LIBRARIES := extisolate extisolate-link $(if $(on_windows),,extisolate-python)
PROGRAM := $(B)/extisolate$(if $(on_windows),.exe)

# ---- what is built -------------------------------------------------------------------------------

.PHONY: all
all: $(PROGRAM) $(LIBRARIES:%=$(B)/lib%.a) $(LIBRARIES:%=$(B)/%.pc) $(LIBRARIES:%=$(B)/%.3) \
	$(if $(on_windows),,$(foreach l,$(LIBRARIES),$(B)/$(call link_name,$l))) ## build the program and libraries

.PHONY: libs
libs: $(STATIC) # alone, without the program

# Objects depend on this file, which changes only when the flags or the lists do.
$(B)/flags: FORCE
	@$(PKG_CONFIG) --exists libelf jansson $(if $(with_nettle),nettle) || \
	    { echo "libelf, jansson and nettle are needed to build: try 'make deps'" >&2; exit 1; }
	@mkdir -p $(@D)
	@printf '%s\n' $(call quote,$(CC) $(harden_flags) $(harden_pie) $(ALL_CFLAGS) $(JANSSON_CFLAGS) $(harden_ldflags) $(ALL_LDFLAGS) $(PROGRAM_LIBS)) \
	    '$(LIB_SRCS) $(PROGRAM_SRCS) $(LINK_SRCS)' 'HARDEN=$(HARDEN)' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(QUIRKS_SRC): loader/resolve/quirks.json
	@mkdir -p $(@D)
	@{ echo '#include "loader/resolve/quirks.h"'; echo 'const char exti__quirks_builtin[] ='; \
	    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n"/' $<; echo '    "";'; } >$@
$(QUIRKS_OBJ): $(QUIRKS_SRC) $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(OBJ_FLAGS) -MMD -MP -c -o $@ $<

$(LIB_OBJS) $(LINK_OBJS) $(PYTHON_OBJS): OBJ_FLAGS = $(harden_flags) $(LIB_FLAGS)
# A frame of it is told from others when exceptions pass through it.
$(B)/obj/loader/process/run_watched_posix.o: OBJ_FLAGS += -funwind-tables
# The program's alone: a library that is loaded into others' processes has no say in how theirs allocates.
$(RUN_OBJS) $(CLI_OBJS): OBJ_FLAGS = $(harden_flags) $(if $(harden_pie),-fPIE) $(JANSSON_CFLAGS)
$(B)/obj/%.o: %.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(OBJ_FLAGS) -MMD -MP -c -o $@ $<

$(STATIC): $(LIB_OBJS)
$(PYTHON_STATIC): $(PYTHON_OBJS)
$(LINK_STATIC): $(LINK_OBJS)
$(STATIC) $(PYTHON_STATIC) $(LINK_STATIC):
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# A sanitizer's run-time library comes with the program, so the library alone cannot be complete.  Mach-O
# has no version map: what is not declared EXTI_API is hidden there by -fvisibility alone.
shared_flags = $(if $(on_darwin),-dynamiclib -Wl$(comma)-install_name$(comma)@rpath/$(call soname,$(1)),-shared \
	-Wl$(comma)-soname$(comma)$(call soname,$(1)) -Wl$(comma)--version-script=$(2) \
	$(if $(SAN),,-Wl$(comma)-z$(comma)defs))
$(SHARED): $(LIB_OBJS) $(MAP)
	$(call say,LD,$@)
	$(Q)$(CC) $(call shared_flags,extisolate,$(MAP)) $(harden_ldflags) $(ALL_LDFLAGS) -o $@ $(LIB_OBJS) $(LIBS)

$(LINK_SHARED): $(LINK_OBJS) $(LINK_MAP)
	$(call say,LD,$@)
	$(Q)$(CC) $(call shared_flags,extisolate-link,$(LINK_MAP)) $(harden_ldflags) $(ALL_LDFLAGS) -o $@ $(LINK_OBJS)

$(STATIC) $(SHARED) $(PYTHON_STATIC) $(PYTHON_SHARED) $(LINK_STATIC) $(LINK_SHARED) $(MACHO_CHECK): | $(COUNTED_EXIT)

# It stays mapped, as threads that were in contexts call it when they end.  Handles are links of its own, in a
# table that nobody else sees.
$(PYTHON_SHARED): $(PYTHON_OBJS) $(LINK_STATIC) $(PYTHON_MAP) $(B)/$(call link_name,extisolate)
	$(call say,LD,$@)
	$(Q)$(CC) $(call shared_flags,extisolate-python,$(PYTHON_MAP)) $(if $(on_darwin),,-Wl$(comma)-z$(comma)nodelete) \
	    $(harden_ldflags) $(ALL_LDFLAGS) -o $@ $(PYTHON_OBJS) $(LINK_STATIC) -L$(B) -lextisolate $(SYSTEM_LIBS)

define shared_links
$(B)/$(call soname,$(1)): $(call shared,$(1))
	@ln -sf $$(<F) $$@
$(B)/$(call link_name,$(1)): $(B)/$(call soname,$(1))
	@ln -sf $$(<F) $$@
endef
$(foreach l,$(LIBRARIES),$(eval $(call shared_links,$l)))

$(PROGRAM): $(CLI_OBJS) $(RUN_OBJS) $(PYTHON_STATIC) $(LINK_STATIC) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(CC) $(harden_pie) $(harden_ldflags) $(ALL_LDFLAGS) -o $@ $^ $(PROGRAM_LIBS)

$(B)/extisolate.pc: loader/extisolate.pc.in
$(B)/extisolate-link.pc: link/extisolate-link.pc.in
$(B)/extisolate-python.pc: runtime/extisolate-python.pc.in
$(LIBRARIES:%=$(B)/%.pc): $(HEADER) FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	    -e 's|@SYSTEM_LIBS@|$(SYSTEM_LIBS)|' -e 's| @NETTLE@|$(if $(with_nettle), nettle)|' $(filter %.in,$^) >$@.$$$$ && \
	    mv $@.$$$$ $@

# The manual pages of the libraries are their headers' contracts.
$(B)/extisolate.3: $(HEADER)
$(B)/extisolate.3: see := extisolate 1,dlopen 3,extisolate-python 3,extisolate-quirks 5
$(B)/extisolate-link.3: $(LINK_HEADER)
$(B)/extisolate-link.3: see := extisolate 3,extisolate-python 3
$(B)/extisolate-python.3: $(PYTHON_HEADER)
$(B)/extisolate-python.3: see := extisolate 1,python3 1,extisolate 3
$(LIBRARIES:%=$(B)/%.3): scripts/man3.awk docs/extisolate.1
	@mkdir -p $(@D)
	@awk -f $< -v page=$(basename $(@F)) -v see='$(see)' -v date="$$(sed -n 's/^\.Dd //p' docs/extisolate.1)" \
	    $(filter %.h,$^) >$@

# For glibc 2.28 and later, whatever is installed here.
.PHONY: wheel
MANYLINUX := $(abspath $(BUILD))/manylinux
$(MANYLINUX)/config.mak: scripts/manylinux.sh
	@scripts/deps.sh wheel
	@scripts/manylinux.sh $(@D)
wheel: $(MANYLINUX)/config.mak ## the Python package as wheels for any Linux, in build/dist; PYTHON='python3.9 python3'
	@scripts/wheel.sh $(MANYLINUX) $(abspath $(BUILD))/dist $(PYTHON)

.PHONY: install uninstall clean deps
libdir := $(DESTDIR)$(LIBDIR)
headers := $(notdir $(HEADER)) $(LINK_HEADER:include/%=%) $(if $(on_windows),,$(PYTHON_HEADER:include/%=%))
install: all ## install into DESTDIR PREFIX (BINDIR LIBDIR INCLUDEDIR MANDIR DOCDIR)
	$(INSTALL) -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBDIR)/pkgconfig $(INCLUDEDIR)/extisolate $(DOCDIR) \
	    $(foreach n,1 3 5,$(MANDIR)/man$n))
	$(INSTALL) -m 755 $(PROGRAM) $(DESTDIR)$(BINDIR)/
	$(INSTALL) -m 644 $(LIBRARIES:%=$(B)/lib%.a) $(libdir)/
	$(if $(on_windows),,$(INSTALL) -m 755 $(foreach l,$(LIBRARIES),$(call shared,$l)) $(libdir)/)
	$(if $(on_windows),,set -e; $(foreach l,$(LIBRARIES),ln -sf $(notdir $(call shared,$l)) $(libdir)/$(call soname,$l); \
	    ln -sf $(call soname,$l) $(libdir)/$(call link_name,$l);))
	set -e; $(foreach h,$(headers),$(INSTALL) -m 644 include/$h $(DESTDIR)$(INCLUDEDIR)/$h;)
	$(INSTALL) -m 644 $(LIBRARIES:%=$(B)/%.pc) $(libdir)/pkgconfig/
	$(INSTALL) -m 644 docs/extisolate.1 $(DESTDIR)$(MANDIR)/man1/
	$(INSTALL) -m 644 $(LIBRARIES:%=$(B)/%.3) $(DESTDIR)$(MANDIR)/man3/
	$(INSTALL) -m 644 docs/extisolate-quirks.5 $(DESTDIR)$(MANDIR)/man5/
	$(INSTALL) -m 644 docs/sharing.md $(DESTDIR)$(DOCDIR)/

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(BINDIR)/$(notdir $(PROGRAM)) $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(headers)) \
	    $(foreach l,$(LIBRARIES),$(libdir)/lib$l.a $(libdir)/$(call link_name,$l) $(libdir)/$(call soname,$l) \
	    $(libdir)/$(notdir $(call shared,$l)) $(libdir)/pkgconfig/$l.pc) \
	    $(addprefix $(DESTDIR)$(MANDIR)/,man1/extisolate.1 $(LIBRARIES:%=man3/%.3) man5/extisolate-quirks.5) \
	    $(DESTDIR)$(DOCDIR)/sharing.md

clean: ## remove what was built
	rm -rf $(BUILD)

# Debian's Sphinx, MyST and Furo; any others by SPHINX=.
SPHINX ?= /usr/bin/python3 -m sphinx
DOCS ?= docs
HTML ?= $(BUILD)/html
# Sphinx imports the package for its docstrings.
$(B)/docs-package: $(wildcard bindings/python/ext/* bindings/python/src/extisolate/*.py*) | all
	@scripts/deps.sh docs
	@rm -rf $@
	@EXTISOLATE_BUILD=$(abspath $(B)) /usr/bin/python3 -m pip install -q --no-deps --no-build-isolation --target $@ ./bindings/python
	@touch $@
.PHONY: html
# Always as a whole (-E): read once more, a page loses its enumerators in Sphinx 5.
html: $(B)/docs-package ## the documentation as a site, in build/html
	PYTHONPATH=$(abspath $<) $(SPHINX) -q -E -W --keep-going -b html -d $(HTML).doctrees $(DOCS) $(HTML)

deps: ## install the packages that building and testing need
	@scripts/deps.sh build test corpus docs

# ---- tests ---------------------------------------------------------------------------------------

# A test is tests/<group>/test_*.c, a cmocka program, or tests/<group>/*.sh.  tests/run.sh runs them
# and keeps count.  Unit and isolation tests link the static library, which hides nothing from them;
# tests/api links the shared one and sees what any user sees.
export CC
export EXTI_BUILD := $(abspath $(B))
export EXTI_RESULTS ?= $(abspath $(BUILD))/results
export EXTI_LABEL ?=

programs = $(patsubst tests/%.c,$(B)/tests/%,$(sort $(shell find tests/$(1) -name 'test_*.c')))
scripts = $(wildcard tests/$(1)/test_*.sh)
# qemu-user has no seccomp, and gives handlers no si_errno, which says whose a signal is that was sent on.
NOT_EMULATED := child_signals context_signals context_timers directory ended ends old_signals
# EXTI_EMULATED=core goes without what takes long there,
LONG_EMULATED := captured captured_globally closure closure_real constructors copy_many elf_plan hosts json_read ld_cache \
	loader_calls locale machine macho_rebind_hostile macho_shift_refuse nomem pe_check_copy private_symbols search_elf \
	verify_pe verify_replaced zone
# and without what forks again and again while threads run: the child may find a lock of the emulator's own
# taken, and then wait for ever.
FORK_EMULATED := children environment fork fork_guard heap
not_run := $(addprefix %/test_,$(if $(EXTI_EMULATED),$(NOT_EMULATED)) \
	$(if $(filter core,$(EXTI_EMULATED)),$(LONG_EMULATED) $(FORK_EMULATED)))
run_here = $(filter-out $(not_run) $(not_run:%=%.sh),$(1))
UNIT_TESTS := $(call run_here,$(call programs,unit))
API_TESTS := $(call programs,api)
ISOLATION_TESTS := $(call run_here,$(call programs,isolation))
STATIC_TESTS := $(UNIT_TESTS) $(ISOLATION_TESTS) $(call programs,elf_inputs) \
	$(call programs,macho_inputs) $(call programs,pe_inputs) $(call programs,runtime) $(call programs,corpus)
PYTHON_TESTS := $(call programs,python)
PYTHON_NOMEM := $(B)/tests/python/test_nomem
NOMEM_WRAPS := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup free pthread_create pthread_setspecific \
	eventfd pyrt_heap_install pyrt_heap_free pyrt_module_add extipy__output_begin extipy__finalise)
TEST_PROGRAMS := $(STATIC_TESTS) $(API_TESTS) $(PYTHON_TESTS)
SUPPORT_OBJS := $(call objs,$(wildcard tests/support/*.c))
TEST_CFLAGS = $(ALL_CFLAGS) $(CMOCKA_CFLAGS)

# An independent reader of Mach-O files; the loader beside it is built by its tests.
MACHO_CHECK := $(B)/tests/macho_check
MACHO_CHECK_OBJS := $(call objs,$(addprefix tests/macho_inputs/loader/,macho_check.c file.c fixups.c \
	trie.c check.c unwind.c sign.c))

# What the library makes of real ones.
MACHO_REBUILD := $(B)/tests/macho_rebuild
PE_REWRITE := $(B)/tests/pe_rewrite

# Of PE files, with names that the program would not give.
WINE_REWRITE := $(B)/tests/wine_rewrite

# One CPython context after the other, and without what keeps that from growing.
CYCLE := $(B)/tests/cycle
CYCLE_WRAPS := -Wl$(comma)--wrap=pyrt_heap_install
# CPython contexts with different options.
SETTINGS := $(B)/tests/settings

PACKAGES_BASE := $(B)/tests/packages_base
PACKAGES_ORDER := $(B)/tests/packages_order
PACKAGES_LANGUAGES := $(B)/tests/packages_languages

# `make check` runs unit tests with sanitizers only.
.PHONY: test-programs check-programs core-programs
core-programs: $(UNIT_TESTS) $(ISOLATION_TESTS)
test-programs: $(UNIT_TESTS) check-programs
check-programs: $(filter-out $(UNIT_TESTS),$(TEST_PROGRAMS)) $(MACHO_CHECK) $(MACHO_REBUILD) $(PE_REWRITE) $(WINE_REWRITE) $(CYCLE) \
	$(SETTINGS) $(PACKAGES_BASE) $(PACKAGES_ORDER) $(PACKAGES_LANGUAGES)

$(SUPPORT_OBJS): OBJ_FLAGS = $(CMOCKA_CFLAGS)
# gcc takes minutes over where the variables of tests with sanitizers are.
$(TEST_PROGRAMS:$(B)/%=$(B)/obj/%.o): OBJ_FLAGS = $(CMOCKA_CFLAGS) $(if $(SAN),-O1 -g1)

$(STATIC_TESTS): $(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJS) $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LDFLAGS) -o $@ $^ $(TEST_LIBS) $(CMOCKA_LIBS) $(LIBS)

# What runtime/ has no public header for.
RUNTIME_TESTS := $(filter $(B)/tests/unit/runtime/%,$(UNIT_TESTS))
$(RUNTIME_TESTS): $(call objs,$(RUNTIME_SRCS)) $(LINK_STATIC)
$(RUNTIME_TESTS): TEST_LIBS = $(LINK_STATIC) $(STATIC)
LINK_TESTS := $(filter $(B)/tests/unit/link/%,$(UNIT_TESTS))
$(LINK_TESTS): $(LINK_STATIC)

# A program that exports what libraries do.
$(B)/tests/isolation/test_captured $(B)/tests/isolation/test_interposed $(B)/tests/isolation/test_tls: TEST_LDFLAGS := -rdynamic

$(API_TESTS): $(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJS) $(B)/libextisolate.so
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT_OBJS) -L$(B) -lextisolate -Wl,-rpath,'$$ORIGIN/../..' $(CMOCKA_LIBS) \
	    -ldl -lpthread

PYTHON_SUPPORT := $(call objs,$(wildcard tests/python/support/*.c))
$(PYTHON_SUPPORT): OBJ_FLAGS = $(CMOCKA_CFLAGS)
# Hosts whose objects are linked to Python's.
LINKED_TESTS := $(addprefix $(B)/tests/python/,test_natives test_link_machine)
$(LINKED_TESTS): TEST_LIBS := -lextisolate-link
$(LINKED_TESTS): $(B)/libextisolate-link.so
$(filter-out $(PYTHON_NOMEM),$(PYTHON_TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJS) $(PYTHON_SUPPORT) $(B)/libextisolate-python.so
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -lextisolate-python -lextisolate $(TEST_LIBS) \
	    -Wl,-rpath,'$$ORIGIN/../..' $(CMOCKA_LIBS) -ldl -lpthread

# The library of contexts is part of it, so that what that calls can be made to fail.
$(PYTHON_NOMEM): $(B)/obj/tests/python/test_nomem.o $(B)/obj/tests/python/nomem/faults.o $(SUPPORT_OBJS) $(PYTHON_SUPPORT) $(PYTHON_STATIC) $(LINK_STATIC) \
    $(B)/libextisolate.so
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $(NOMEM_WRAPS) -o $@ $(filter %.o,$^) $(PYTHON_STATIC) $(LINK_STATIC) -L$(B) -lextisolate \
	    -Wl,-rpath,'$$ORIGIN/../..' $(CMOCKA_LIBS) -ldl -lpthread

$(MACHO_CHECK): $(MACHO_CHECK_OBJS)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBCRYPTO_LIBS)

$(MACHO_REBUILD): $(B)/obj/tests/macho_corpus/rebuild.o
$(PE_REWRITE): $(B)/obj/tests/pe_corpus/rewrite.o
$(MACHO_REBUILD) $(PE_REWRITE): $(B)/obj/tests/support/lief.o $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(STATIC) $(LIBS)

$(WINE_REWRITE): $(B)/obj/tests/wine/rewrite.o $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(CYCLE): $(B)/obj/tests/runtime/cycle.o $(RUN_OBJS) $(PYTHON_OBJS) $(LINK_STATIC) $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $(CYCLE_WRAPS) -o $@ $^ $(LIBS)

$(SETTINGS): $(B)/obj/tests/runtime/settings.o $(RUN_OBJS) $(PYTHON_OBJS) $(LINK_STATIC) $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(PACKAGES_BASE): $(B)/obj/tests/packages/base.o
$(PACKAGES_ORDER): $(B)/obj/tests/packages/order.o
$(PACKAGES_LANGUAGES): $(B)/obj/tests/packages/languages.o
$(PACKAGES_BASE) $(PACKAGES_ORDER) $(PACKAGES_LANGUAGES): $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(STATIC) $(LIBS)

run = @tests/run.sh $(1) $(sort $(2))

.PHONY: check-unit check-api check-elf-inputs check-macho-inputs check-pe-inputs check-isolation \
	check-runtime check-runtime-soaks check-runtime-semantics check-python check-python-package \
	check-package-soaks check-wheel check-hosts check-cli check-faults check-races check-allocations check-corpus check-macho-corpus \
	check-pe-corpus check-macos check-windows check-wine check-packages check-servers check-suites check-arm64 \
	check-arm64-core
check-unit: $(UNIT_TESTS) ## unit tests, every error path
	$(call run,unit,$(UNIT_TESTS) $(call scripts,unit))
check-api: $(API_TESTS) ## the shared library through the public header
	$(call run,api,$(API_TESTS) $(call scripts,api))
check-elf-inputs: all $(call programs,elf_inputs) ## odd and broken ELF files, built here
	$(call run,elf_inputs,$(call programs,elf_inputs) $(call scripts,elf_inputs))
check-macho-inputs: all $(call programs,macho_inputs) $(MACHO_CHECK) ## Mach-O files, built and run here
	$(call run,macho_inputs,$(call programs,macho_inputs) $(call scripts,macho_inputs))
check-pe-inputs: all $(call programs,pe_inputs) ## PE files, built here
	$(call run,pe_inputs,$(call programs,pe_inputs) $(call scripts,pe_inputs))
check-isolation: all $(ISOLATION_TESTS) ## real loading in many contexts
	$(call run,isolation,$(ISOLATION_TESTS) $(call run_here,$(call scripts,isolation)))
RUNTIME_SOAKS := $(addprefix tests/runtime/,test_cycles.sh test_newer.sh test_scale.sh)
RUNTIME_SEMANTICS := tests/runtime/test_semantics.sh
check-runtime: all $(call programs,runtime) $(CYCLE) $(SETTINGS) ## CPython contexts
	$(call run,runtime,$(call programs,runtime) $(filter-out $(RUNTIME_SOAKS) $(RUNTIME_SEMANTICS),$(call scripts,runtime)))
check-runtime-soaks: all $(CYCLE) $(SETTINGS) ## CPython contexts by the hundred, and one after another
	$(call run,runtime-soaks,$(RUNTIME_SOAKS))
check-runtime-semantics: all ## programs in contexts end and print as in the interpreter itself
	$(call run,runtime-semantics,$(RUNTIME_SEMANTICS))
check-python: all $(PYTHON_TESTS) ## CPython contexts through the public header
	$(call run,python,$(PYTHON_TESTS) $(call scripts,python))
check-python-package: all ## the Python package in virtual environments; EXTI_ALL=1: of each CPython
	$(call run,package,tests/package/test_package.sh)
check-package-soaks: export TEST_TIMEOUT ?= 14400
check-package-soaks: all ## the Python package: 10,000 calls of seven packages, 1,000 interpreters
	$(call run,package-soaks,tests/package/soak/test_soak.sh)
check-wheel: all ## the wheels that `make wheel` builds
	$(call run,wheel,tests/package/test_wheel.sh)
check-hosts: all ## the hosts in other languages that examples/ has
	$(call run,hosts,$(call scripts,hosts))
check-arm64: export TEST_TIMEOUT ?= 7200
check-arm64: ## unit, API and isolation tests on arm64, by an emulator; as root
	$(call run,arm64,$(call scripts,arm64))
check-arm64-core: export EXTI_ARM64 := core
check-arm64-core: ## of these what takes minutes, and is done by EXTI_UNTIL
	$(call run,arm64-core,$(call scripts,arm64))
check-cli: all ## the program
	$(call run,cli,$(call scripts,cli))
check-allocations: all ## failing allocations; EXTI_ALL=1: each of them
	$(call run,allocations,$(call scripts,allocations))
check-faults: all ## failing system calls; EXTI_ALL=1: each of them
	$(call run,faults,$(call scripts,faults))
check-races: all ## processes and threads on the same directories; EXTI_RACE_SECONDS: how long
	$(call run,races,$(call scripts,races))
check-corpus: all $(call programs,corpus) ## the distribution's extension modules
	$(call run,corpus,$(call programs,corpus) $(call scripts,corpus))
check-suites: export TEST_TIMEOUT ?= $(if $(filter all,$(EXTI_SUITES)),14400,3600)
# Each keeps all processors busy by itself.
check-suites check-packages: export EXTI_JOBS := 1
check-suites: all ## the suites of CPython, numpy and other packages, in two contexts at once; EXTI_SUITES=all: all of them
	$(call run,suites,$(call scripts,suites))
check-macho-corpus: all $(MACHO_CHECK) $(MACHO_REBUILD) ## real Mach-O files, of others
	$(call run,macho_corpus,$(call scripts,macho_corpus))
check-pe-corpus: all $(PE_REWRITE) ## real PE files, of others
	$(call run,pe_corpus,$(call scripts,pe_corpus))
check-macos: ## the macOS build, by a cross compiler
	$(call run,macos,$(call scripts,macos))
check-windows: all ## the Windows build, by mingw, and its tests, by wine
	$(call run,windows,$(call scripts,windows))
check-wine: all $(WINE_REWRITE) ## PE copies, loaded and run by wine
	$(call run,wine,$(call scripts,wine))
# More than an hour on a slow machine.
check-packages: export TEST_TIMEOUT ?= 7200
check-packages: all $(PACKAGES_BASE) $(PACKAGES_ORDER) $(PACKAGES_LANGUAGES) $(CYCLE) ## packages at work in contexts; EXTI_PACKAGES=all: all of them
	$(call run,packages,$(call scripts,packages))
check-servers: export TEST_TIMEOUT ?= 7200
# They measure how long programs take to end.
check-servers: export EXTI_JOBS := 1
check-servers: all ## unmodified servers, task queues and test runners in four contexts of one process
	$(call run,servers,$(call scripts,servers))

.PHONY: check-layers check-abi check-readme check-docs
check-layers: all ## rooms: includes and references obey them, and form no circle
	$(call run,layers,tests/meta/test_layers.sh tests/meta/test_covered.sh tests/meta/test_limits.sh)
check-abi: all ## exported symbols, version map and header agree; the flags that the files were built with
	$(call run,abi,tests/meta/test_abi.sh tests/meta/test_link_abi.sh tests/meta/test_python_abi.sh tests/meta/test_hardening.sh)
check-readme: all ## what README.md shows works
	$(call run,readme,tests/meta/test_readme.sh)
check-docs: ## the site, and that each public function has its place there
	$(call run,docs,$(call scripts,docs))

# ---- fuzzing -------------------------------------------------------------------------------------

# tests/fuzz/fuzz_<name>.c; its corpus is testdata/corpus/<name>/.  The same source runs under
# libFuzzer and, with replay_main.c, over the corpus in `make check`.
FUZZ_SRCS := $(wildcard tests/fuzz/fuzz_*.c)
REPLAYS := $(patsubst tests/fuzz/fuzz_%.c,$(B)/tests/fuzz/replay_%,$(FUZZ_SRCS))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(FUZZ_SRCS))

$(REPLAYS): $(B)/tests/fuzz/replay_%: $(B)/obj/tests/fuzz/fuzz_%.o \
    $(B)/obj/tests/fuzz/replay_main.o $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

FUZZ_FLAGS = $(BASE_CPPFLAGS) $(BASE_CFLAGS) $(DEP_CFLAGS) -O1 -g -fno-sanitize-recover=all
FUZZ_OBJS := $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(LIB_SRCS) quirks_builtin.c)
vpath quirks_builtin.c $(B)
$(FUZZ_OBJS): $(BUILD)/fuzz/obj/%.o: %.c
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<
-include $(FUZZ_OBJS:.o=.d)
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_OBJS) $(wildcard tests/fuzz/*.h tests/unit/*/*.h)
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -o $@ $< $(FUZZ_OBJS) $(LIBS)

.PHONY: check-fuzz fuzz fuzz-long
check-fuzz: $(REPLAYS) ## replay the fuzzing corpus
	$(call run,fuzz,$(REPLAYS))
# An input that takes longer than this many seconds is a finding.
FUZZ_TIMEOUT ?= 5
fuzz: $(FUZZERS) ## fuzz each target for FUZZ_TIME seconds (clang)
	@for f in $(FUZZERS); do n=$${f##*/}; mkdir -p $$f.new $$f.crashes/; \
	    $$f -max_total_time=$(FUZZ_TIME) -timeout=$(FUZZ_TIMEOUT) -artifact_prefix=$$f.crashes/ \
	        $$f.new testdata/corpus/$$n || exit 1; \
	done
fuzz-long: ## fuzz each target for two hours of processor time
	$(MAKE) fuzz FUZZ_TIME=7200

# ---- the same tests under other tools ------------------------------------------------------------

# A sanitizer's report goes to a file, for which tests/run.sh fails the test whatever child it came
# from; so no test takes a sanitizer's words or exit status for the program's.
ifneq ($(SAN),)
export EXTI_REPORTS := $(abspath $(B))/reports
to_report := log_path="$(EXTI_REPORTS)/report":exitcode=99:
endif
# The run-time library of gcc 12 takes some blocks of thread-locals for those of another glibc and
# reads garbage as their size, of which its leak checker dies ("Tracer caught signal 11",
# google/sanitizers 1322): it is not to look at them.  It reaches what they hold all the same, by way
# of libc's own list of them.
export ASAN_OPTIONS := $(to_report)detect_stack_use_after_return=1:strict_string_checks=1 \
	intercept_tls_get_addr=0:$(ASAN_OPTIONS)
export UBSAN_OPTIONS := $(to_report)print_stacktrace=1:halt_on_error=1:$(UBSAN_OPTIONS)
export TSAN_OPTIONS := $(to_report)halt_on_error=1:second_deadlock_stack=1:$(TSAN_OPTIONS)
export LSAN_OPTIONS := suppressions="$(CURDIR)/tests/lsan.supp":print_suppressions=0:$(LSAN_OPTIONS)
# Of each stack two frames, so that a suppression speaks of who called malloc and never hides our own
# frames further up.  Some tests preload libraries.
check-runtime check-runtime-soaks check-runtime-semantics check-leaks check-cli: export ASAN_OPTIONS := \
	malloc_context_size=2:verify_asan_link_order=0:$(ASAN_OPTIONS)
# What CPython leaks cannot be told by a name once it is unloaded, and so not be suppressed.
check-python: export ASAN_OPTIONS := detect_leaks=0:$(ASAN_OPTIONS)

# Under the tools only the system's CPython, not so many contexts at once, and of the corpus what our
# own code does; under the thread sanitizer every twentieth allocation fails in turn.  SAN_LIMITS= and
# THREAD_LIMITS= lift that.
SAN_LIMITS ?= EXTI_PYTHON_LIMIT=1 EXTI_SCALE=20 EXTI_CORPUS_QUICK=1 EXTI_ROUNDS=10
THREAD_LIMITS ?= $(SAN_LIMITS) EXTI_STEP=20
with_san = +@$(MAKE) --no-print-directory -k SAN=$(1) EXTI_LABEL=$(1)/ $(2)

.PHONY: check-proxies check-proxies-sanitized check-links check-link-machine check-python-links check-python-link-machine check-random check-threads-random check-san-core check-san-more check-san-rest check-san check-leaks check-threads coverage \
	check-valgrind check-valgrind-core valgrind-unit valgrind-api valgrind-isolation valgrind-isolation-core valgrind-cli valgrind-runtime
check-san-core: ## formats, loader and public header under the address and undefined-behaviour sanitizers
	$(call with_san,address$(comma)undefined,$(SAN_LIMITS) check-unit check-api check-fuzz)
check-san-more: ## real loading and the program under them, and real loading under the thread sanitizer
	$(call with_san,address$(comma)undefined,$(SAN_LIMITS) check-isolation check-runtime check-leaks \
	    check-cli check-python)
	$(call with_san,thread,$(THREAD_LIMITS) check-api check-isolation check-threads)
check-san-rest: # each test that any other tool or group runs too
	$(call with_san,address$(comma)undefined,$(SAN_LIMITS) check-elf-inputs check-macho-inputs check-pe-inputs \
	    check-corpus check-runtime-soaks check-runtime-semantics)
	$(call with_san,thread,$(THREAD_LIMITS) check-unit check-fuzz)
# One after the other, as they share their builds.
check-san: ## all of that, and what other tools and groups run too
	@rc=0; for t in core more rest; do $(MAKE) --no-print-directory check-san-$$t || rc=1; done; exit $$rc
check-links: ## objects of two heaps at random: 10 million steps under the address, 1 million under the thread sanitizer
	$(call with_san,address$(comma)undefined,EXTI_STEPS=10000000 check-link-machine)
	$(call with_san,thread,EXTI_STEPS=1000000 check-link-machine)
check-link-machine: $(B)/tests/unit/link/test_machine
	$(call run,links,$<)
# By malloc, the sanitizer knows of each of Python's objects.  A quarter of the steps is that of threads.
check-python-links: ## the same with the objects of two CPython contexts and a host
	$(call with_san,address$(comma)undefined,EXTI_STEPS=10000000 PYTHONMALLOC=malloc check-python-link-machine)
	$(call with_san,thread,EXTI_STEPS=4000000 EXTI_TEST='threads_*' check-python-link-machine)
check-python-link-machine: export TEST_TIMEOUT ?= 7200
check-python-link-machine: export ASAN_OPTIONS := detect_leaks=0:$(ASAN_OPTIONS)
check-python-link-machine: export TSAN_OPTIONS := ignore_noninstrumented_modules=1:$(TSAN_OPTIONS)
check-python-link-machine: all $(B)/tests/python/test_link_machine
	$(call run,python-links,$(B)/tests/python/test_link_machine)
check-proxies: ## the Python package's tests of proxies under the address and the thread sanitizer
	$(call with_san,address$(comma)undefined,PYTHONMALLOC=malloc check-proxies-sanitized)
	$(call with_san,thread,check-proxies-sanitized)
check-proxies-sanitized: export TEST_TIMEOUT ?= 7200
check-proxies-sanitized: export ASAN_OPTIONS := detect_leaks=0:$(ASAN_OPTIONS)
check-proxies-sanitized: export TSAN_OPTIONS := ignore_noninstrumented_modules=1:$(TSAN_OPTIONS)
check-proxies-sanitized: export SAN := $(SAN)
check-proxies-sanitized: all
	$(call run,proxies,tests/package/sanitized/test_proxies.sh)
check-random: ## sixteen threads do anything with CPython contexts: 10 minutes under the thread sanitizer
	$(call with_san,thread,EXTI_SECONDS=600 check-threads-random)
check-threads-random: $(B)/tests/python/test_random
	@TSAN_OPTIONS=$$TSAN_OPTIONS:ignore_noninstrumented_modules=1 tests/run.sh random $<
check-leaks: all # with SAN=address,undefined: contexts leak what the interpreter leaks, no more
	$(call run,leaks,tests/runtime/leaks.sh)
# CPython's and libc's own accesses are not looked at: neither is built for this sanitizer.
check-threads: all $(PYTHON_TESTS) # with SAN=thread: CPython contexts
	@TSAN_OPTIONS=$$TSAN_OPTIONS:ignore_noninstrumented_modules=1 \
	    tests/run.sh threads tests/runtime/test_contexts.sh $(PYTHON_TESTS)

# A child that a test forks for a case of its own ends with the same status on an error.
VALGRIND_PROGRAM := $(abspath $(B))/valgrind/extisolate
# By default it gives the processor to whichever thread asks first, and one that spins keeps it.
VALGRIND := valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --num-callers=40 \
	--errors-for-leak-kinds=definite$(comma)indirect --suppressions=$(CURDIR)/tests/valgrind.supp
valgrind = @EXTI_LABEL=valgrind/ EXTI_WRAP='$(VALGRIND)' $(3) tests/run.sh $(1) $(sort $(2))
valgrind_program = @EXTI_LABEL=valgrind/ EXTISOLATE='$(VALGRIND_PROGRAM)' EXTI_PYTHON_LIMIT=1 \
	tests/run.sh $(1) $(2)
# Of the toy libraries two flavours, of what fails in turn every third; VALGRIND_LIMITS= lifts that.
VALGRIND_LIMITS ?= EXTI_FLAVOURS=2 EXTI_ROUNDS=10 EXTI_STEP=3
check-valgrind: valgrind-unit valgrind-api valgrind-isolation valgrind-cli valgrind-runtime ## the tests under valgrind
# What the address sanitizer does not see: values that nobody has set, and code that it was not built into.
VALGRIND_CORE := $(addprefix %/,test_contexts test_closing test_hooks test_proof)
check-valgrind-core: valgrind-api valgrind-isolation-core valgrind-cli valgrind-runtime
valgrind-unit: $(UNIT_TESTS)
	$(call valgrind,unit,$(UNIT_TESTS))
valgrind-api: $(API_TESTS)
	$(call valgrind,api,$(API_TESTS))
# Where a library that has been read as a file is loaded itself, valgrind 3.19 takes the mappings for
# overlapping ("truncate_DebugInfoMapping_overlaps") and ends: what all C++ copies share is there before,
# and programs that share more are left out.  A thread that waits by F_OFD_SETLKW stops all the others.
# What a thread has whose load an end or a fork of the process cuts off is lost to that process.
NOT_VALGRINDS := $(addprefix %/,test_codeless test_needs test_quirk_effects test_record_locks)
valgrind-isolation: all $(ISOLATION_TESTS)
	$(call valgrind,isolation,$(filter-out $(NOT_VALGRINDS),$(ISOLATION_TESTS)),$(VALGRIND_LIMITS) LD_PRELOAD=libstdc++.so.6)
valgrind-isolation-core: all $(ISOLATION_TESTS)
	$(call valgrind,isolation,$(filter $(VALGRIND_CORE),$(ISOLATION_TESTS)),$(VALGRIND_LIMITS) LD_PRELOAD=libstdc++.so.6)
valgrind-cli: $(VALGRIND_PROGRAM)
	$(call valgrind_program,cli,tests/cli/test_copy.sh tests/cli/test_usage.sh)
valgrind-runtime: $(VALGRIND_PROGRAM)
	$(call valgrind_program,runtime,tests/runtime/valgrind.sh)

# Tests start the program in many ways, so this goes by its name.  Its leaks are the address sanitizer's
# matter.
$(VALGRIND_PROGRAM): $(PROGRAM) Makefile
	@mkdir -p $(@D)
	@printf '#!/bin/sh\nexec %s --leak-check=no %s "$$@"\n' '$(VALGRIND)' '$(abspath $(PROGRAM))' >$@
	@chmod +x $@

# Those that reach much of the product in little time; COVERAGE= names others.  What a process that is killed has
# done is not counted.
COVERAGE ?= check-python check-unit check-api check-fuzz check-elf-inputs check-macho-inputs check-pe-inputs check-isolation \
	check-cli check-runtime check-runtime-semantics
coverage: ## lines and branches that the tests reach, per room; those missed are printed with V=1
	@scripts/deps.sh build test coverage
	@$(MAKE) --no-print-directory -j$(JOBS) COV=1 all test-programs
	@find $(BUILD)/cov -name '*.gcda' -delete
	@rc=0; $(MAKE) --no-print-directory -k COV=1 EXTI_LABEL=coverage/ $(COVERAGE) || rc=1; \
	    scripts/coverage.sh $(BUILD)/cov/obj $(BUILD)/cov/coverage || rc=1; \
	    $(if $(filter 1,$(V)),cat $(BUILD)/cov/coverage/lines $(BUILD)/cov/coverage/branches, \
	        echo 'missed: $(BUILD)/cov/coverage/lines and branches'); exit $$rc

# ---- everything ----------------------------------------------------------------------------------

# Groups run side by side and their tests one by one, the longest groups first.  `make check` is the loop of
# every day: each room, each format, wine, two contexts with numpy, and the core under the address sanitizer.
# CI adds CHECK_MORE, as much as it has time for; the rest takes hours.
CHECK := check-san-core check-cli check-faults check-wine check-isolation check-runtime check-python \
	check-python-package check-macho-inputs \
	check-elf-inputs check-api check-pe-inputs check-allocations check-readme check-layers check-abi check-fuzz
CHECK_MORE := check-unit check-docs check-san-more check-arm64-core check-windows check-runtime-soaks check-runtime-semantics check-hosts \
	check-suites check-packages check-pe-corpus \
	check-macho-corpus check-macos check-corpus check-valgrind-core check-wheel
CHECK_ALL := check-san check-links check-python-links check-proxies check-random check-valgrind check-arm64 check-races check-package-soaks check-servers \
	$(filter-out check-san-core check-san-more check-valgrind-core check-arm64-core,$(CHECK) $(CHECK_MORE))

.PHONY: check check-more check-all bench bench-python demo compile_commands.json format format-check help
groups = rc=0; $(MAKE) --no-print-directory -k -j$(JOBS) EXTI_JOBS=1 $(1) || rc=1; \
	    tests/run.sh --sum $(EXTI_RESULTS) $$rc
check: deps ## what to run before a commit, within 10 minutes; ends with: N passed, N failed, N skipped
	@rm -rf $(EXTI_RESULTS)
	@$(MAKE) --no-print-directory -j$(JOBS) all check-programs
	@$(call groups,$(CHECK))
check-more: deps # after `make check`, whose counts are in the closing line too; EXTI_UNTIL=SECONDS
	@$(MAKE) --no-print-directory -j$(JOBS) all test-programs
	@$(call groups,$(CHECK_MORE))
check-all: deps ## everything: soaks, all packages and suites, every tool without limits; takes hours
	@scripts/deps.sh packages
	@rm -rf $(EXTI_RESULTS)
	@$(MAKE) --no-print-directory -j$(JOBS) all test-programs
	@$(call groups,$(CHECK_ALL) EXTI_ALL=1 EXTI_PACKAGES=all EXTI_SUITES=all \
	    SAN_LIMITS= THREAD_LIMITS= VALGRIND_LIMITS=)

bench: all ## measure; prints tables
	@bench/run.sh

bench-python: all ## measure pools of interpreters, threads and processes; prints a table
	@bench/run.sh pools

demo: ## numpy in two contexts of one process
	@scripts/deps.sh build demo
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@scripts/demo.sh $(PROGRAM)

compile_commands.json: ## for clangd and other tools
	@{ echo '['; sep=; for s in $(LIB_SRCS) $(PROGRAM_SRCS) $(LINK_SRCS) $(shell find tests -name '*.c'); do \
	    printf '%s{"directory": "%s", "file": "%s", "command": "%s -c %s"}' \
	        "$$sep" '$(CURDIR)' "$$s" '$(CC) $(strip $(TEST_CFLAGS))' "$$s"; sep=',$(empty)\n'; \
	done | sed 's/\\n/\n/g'; echo; echo ']'; } >$@

C_FILES = $(shell git ls-files '*.c' '*.h')
format: ## reformat the sources
	$(CLANG_FORMAT) -i $(C_FILES)
format-check: ## the sources are formatted
	$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

# What is left out, and why: .clang-tidy and tests/meta/cppcheck.supp.  clang-tidy runs clang's static analyser
# too (clang-analyzer-*), in a process for each source: in a second one it takes every va_list for unset.
CLANG_TIDY ?= $(or $(wildcard $(LLVM_BIN)/clang-tidy),clang-tidy)
GCC ?= gcc
each_analyzed = printf '%s\0' $(LIB_SRCS) $(PROGRAM_SRCS) $(LINK_SRCS) | xargs -0 -P $(JOBS) $(1)
.PHONY: analyze
analyze: compile_commands.json ## static analysis by cppcheck, clang-tidy and gcc
	@scripts/deps.sh build analyze
	cppcheck --quiet --std=c11 --enable=warning,portability --error-exitcode=1 -I . -I include -D__linux__ \
	    -D__x86_64__ -D__LP64__ '-DElfW(type)=Elf64_##type' --suppressions-list=tests/meta/cppcheck.supp \
	    base elf macho pe loader link runtime cli
	@$(call each_analyzed,-n 1 $(CLANG_TIDY) --quiet --warnings-as-errors='*' --extra-arg=-DEXTI_ANALYZE -p .)
	@$(call each_analyzed,-I{} $(GCC) -fanalyzer -O0 -Werror -DEXTI_ANALYZE -std=c11 $(BASE_CPPFLAGS) \
	    $(DEP_CFLAGS) $(JANSSON_CFLAGS) -c -o /dev/null {})

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9_.-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  Settings: V=1 WERROR=1 HARDEN= SAN=address,undefined|thread COV=1 CC= CFLAGS= CPPFLAGS= LDFLAGS='

.PHONY: FORCE
FORCE:

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

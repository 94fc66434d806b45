/* The base set: libraries that are shared unless a rule isolates them, format by format.
 * docs/sharing.md lists them with the same words, and tests/unit/resolve/test_policy.c compares the
 * two. */
#include "loader/resolve/policy.h"

#include <string.h>

#define LIBC "a process has one C library, whose parts depend on each other's private symbols"
#define UNWIND                                                                                     \
    "exceptions can cross frames of several contexts only if one unwinder knows all frames"
#define CXX "exceptions, type_info, locales and streams are compared and passed by address"
#define ATOMIC "it looks up locks by address: two copies would not exclude each other"
#define OPENMP "it has static TLS, and its threads are never joined"
#define OPENMP_POOL "its threads are never joined, and each copy would start one per core"
#define INTEL_OPENMP "a second copy aborts the process (\"already initialized\")"
#define SANITIZER "a process has one sanitizer, which is loaded at its start"
#define ALLOCATOR "one allocator cannot free another's memory, and each copy takes static TLS"
#define ALLOCATOR_ZONE "one allocator cannot free another's memory"
#define GPU "the driver keeps one state per process and device"
#define CUDA                                                                                       \
    "it depends on the driver's state, which is one per process, and takes hundreds of megabytes"
#define GLIB "it registers types by process-wide names, and it cannot be unloaded"
#define GTYPES "it registers its types with GLib, by process-wide names"
#define FFI "GLib's introspection and its users free each other's closures"
#define DRAWING "it exchanges objects with GTK and Pango, which are shared"
#define DISPLAY "it passes connections to GTK and the graphics drivers, which are shared"
#define X_HOOKS "it installs hooks in the connections of libX11, which is shared"
#define DBUS "it passes connections to GLib's main loop, which is shared"
#define SSL "its settings and exit handlers are process-wide, and it cannot be unloaded"
#define SQLITE                                                                                     \
    "file locks belong to the process: a copy that closes a file would drop another copy's locks"
#define MPI "a process can join once, and its plug-ins link to it by name"
#define VC                                                                                         \
    "libraries that use it exchange exceptions, streams, locales and memory, and some are shared"
#define JVM "a process can create one virtual machine, which takes over its signals"

struct entry {
    const char *glob, *reason;
    enum exti_base_kind kind;
};

/* Two kinds of libraries: a process can have only one of them, or shared libraries and their users
 * exchange objects of them that a copy would not know.  Names are those of distributions and of
 * wheels, where auditwheel puts a hash before ".so". */
static const struct entry elf[] = {
    {"ld-linux*.so.*", LIBC, EXTI_BASE_FIXED},
    {"ld64.so.*", LIBC, EXTI_BASE_FIXED},
    {"ld-musl-*.so.1", LIBC, EXTI_BASE_FIXED},
    {"libc.musl-*.so.1", LIBC, EXTI_BASE_FIXED},
    {"libc.so.6", LIBC, EXTI_BASE_FIXED},
    {"libc.so", LIBC, EXTI_BASE_FIXED},
    {"libm.so.6", LIBC, EXTI_BASE_FIXED},
    {"libmvec.so.1", LIBC, EXTI_BASE_FIXED},
    {"libpthread.so.0", LIBC, EXTI_BASE_FIXED},
    {"libdl.so.2", LIBC, EXTI_BASE_FIXED},
    {"librt.so.1", LIBC, EXTI_BASE_FIXED},
    {"libutil.so.1", LIBC, EXTI_BASE_FIXED},
    {"libanl.so.1", LIBC, EXTI_BASE_FIXED},
    {"libresolv.so.2", LIBC, EXTI_BASE_FIXED},
    {"libnsl.so.1", LIBC, EXTI_BASE_FIXED},
    {"libnss_*.so.2", LIBC, EXTI_BASE_FIXED},
    {"libBrokenLocale.so.1", LIBC, EXTI_BASE_FIXED},
    {"libthread_db.so.1", LIBC, EXTI_BASE_FIXED},
    {"libc_malloc_debug.so.0", LIBC, EXTI_BASE_FIXED},
    {"libgcc_s.so.1", UNWIND, EXTI_BASE_RUNTIME},
    {"libgcc_s-*.so.*", UNWIND, EXTI_BASE_RUNTIME},
    {"libunwind.so.1", UNWIND, EXTI_BASE_RUNTIME},
    {"libstdc++.so.6", CXX, EXTI_BASE_RUNTIME},
    {"libstdc++-*.so.*", CXX, EXTI_BASE_RUNTIME},
    {"libc++.so.1", CXX, EXTI_BASE_RUNTIME},
    {"libc++abi.so.1", CXX, EXTI_BASE_RUNTIME},
    {"libatomic.so.1", ATOMIC, EXTI_BASE_RUNTIME},
    {"libgomp.so.1", OPENMP, EXTI_BASE_SINGLE},
    {"libgomp-*.so.*", OPENMP, EXTI_BASE_SINGLE},
    {"libomp.so*", OPENMP, EXTI_BASE_SINGLE},
    {"libomp-*.so*", OPENMP, EXTI_BASE_SINGLE},
    {"libiomp5*.so", INTEL_OPENMP, EXTI_BASE_SINGLE},
    {"lib[alt]san.so.*", SANITIZER, EXTI_BASE_RUNTIME},
    {"libubsan.so.*", SANITIZER, EXTI_BASE_RUNTIME},
    {"libclang_rt.*.so", SANITIZER, EXTI_BASE_RUNTIME},
    {"libjemalloc.so.*", ALLOCATOR, EXTI_BASE_RUNTIME},
    {"libjemalloc-*.so*", ALLOCATOR, EXTI_BASE_RUNTIME},
    {"libtcmalloc*.so.*", ALLOCATOR, EXTI_BASE_RUNTIME},
    {"libmimalloc.so.*", ALLOCATOR, EXTI_BASE_RUNTIME},
    {"libtbbmalloc*.so.*", ALLOCATOR, EXTI_BASE_RUNTIME},
    {"libcuda.so.*", GPU, EXTI_BASE_SINGLE},
    {"libnvidia-*.so.*", GPU, EXTI_BASE_SINGLE},
    {"libnvcuvid.so.*", GPU, EXTI_BASE_SINGLE},
    {"libOpenCL.so.1", GPU, EXTI_BASE_SINGLE},
    {"libamdhip64.so.*", GPU, EXTI_BASE_SINGLE},
    {"libhsa-runtime64.so.*", GPU, EXTI_BASE_SINGLE},
    {"libze_loader.so.1", GPU, EXTI_BASE_SINGLE},
    {"libvulkan.so.1", GPU, EXTI_BASE_SINGLE},
    {"libGL.so.1", GPU, EXTI_BASE_SINGLE},
    {"libGLX.so.0", GPU, EXTI_BASE_SINGLE},
    {"libGLdispatch.so.0", GPU, EXTI_BASE_SINGLE},
    {"libGLESv*.so.*", GPU, EXTI_BASE_SINGLE},
    {"libOpenGL.so.0", GPU, EXTI_BASE_SINGLE},
    {"libEGL.so.1", GPU, EXTI_BASE_SINGLE},
    {"libdrm*.so.*", GPU, EXTI_BASE_SINGLE},
    {"libgbm.so.1", GPU, EXTI_BASE_SINGLE},
    {"libva*.so.2", GPU, EXTI_BASE_SINGLE},
    {"libvdpau.so.1", GPU, EXTI_BASE_SINGLE},
    {"libcudart*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcublas*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcudnn*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcufft*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcufile*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcupti*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcurand*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcusolver*.so*", CUDA, EXTI_BASE_SHARED},
    {"libcusparse*.so*", CUDA, EXTI_BASE_SHARED},
    {"libnccl*.so*", CUDA, EXTI_BASE_SHARED},
    {"libnvrtc*.so*", CUDA, EXTI_BASE_SHARED},
    {"libnvJitLink*.so*", CUDA, EXTI_BASE_SHARED},
    {"libnvToolsExt*.so*", CUDA, EXTI_BASE_SHARED},
    {"libglib-2.0.so.0", GLIB, EXTI_BASE_SHARED},
    {"libgobject-2.0.so.0", GLIB, EXTI_BASE_SHARED},
    {"libgmodule-2.0.so.0", GLIB, EXTI_BASE_SHARED},
    {"libgthread-2.0.so.0", GLIB, EXTI_BASE_SHARED},
    {"libgio-2.0.so.0", GLIB, EXTI_BASE_SHARED},
    {"libgirepository-*.so.*", GLIB, EXTI_BASE_SHARED},
    {"libgst*-1.0.so.0", GTYPES, EXTI_BASE_SHARED},
    {"libgdk_pixbuf-2.0.so.0", GTYPES, EXTI_BASE_SHARED},
    {"libpango*-1.0.so.0", GTYPES, EXTI_BASE_SHARED},
    {"libatk*-1.0.so.0", GTYPES, EXTI_BASE_SHARED},
    {"libatspi.so.0", GTYPES, EXTI_BASE_SHARED},
    {"libdbus-glib-1.so.2", GTYPES, EXTI_BASE_SHARED},
    {"libgdk-*.so.*", GTYPES, EXTI_BASE_SHARED},
    {"libgtk-*.so.*", GTYPES, EXTI_BASE_SHARED},
    {"libffi.so.*", FFI, EXTI_BASE_SHARED},
    {"libcairo*.so.2", DRAWING, EXTI_BASE_SHARED},
    {"libfontconfig.so.1", DRAWING, EXTI_BASE_SHARED},
    {"libfreetype.so.6", DRAWING, EXTI_BASE_SHARED},
    {"libharfbuzz*.so.0", DRAWING, EXTI_BASE_SHARED},
    {"libX11.so.6", DISPLAY, EXTI_BASE_SHARED},
    {"libX11-xcb.so.1", DISPLAY, EXTI_BASE_SHARED},
    {"libXau.so.6", DISPLAY, EXTI_BASE_SHARED},
    {"libXdmcp.so.6", DISPLAY, EXTI_BASE_SHARED},
    {"libxcb*.so.*", DISPLAY, EXTI_BASE_SHARED},
    {"libxkbcommon*.so.0", DISPLAY, EXTI_BASE_SHARED},
    {"libwayland-*.so.*", DISPLAY, EXTI_BASE_SHARED},
    {"libICE.so.6", DISPLAY, EXTI_BASE_SHARED},
    {"libSM.so.6", DISPLAY, EXTI_BASE_SHARED},
    {"libXext.so.6", X_HOOKS, EXTI_BASE_SHARED},
    {"libXi.so.6", X_HOOKS, EXTI_BASE_SHARED},
    {"libXrender.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXfixes.so.3", X_HOOKS, EXTI_BASE_SHARED},
    {"libXrandr.so.2", X_HOOKS, EXTI_BASE_SHARED},
    {"libXcursor.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXinerama.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXcomposite.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXdamage.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXtst.so.6", X_HOOKS, EXTI_BASE_SHARED},
    {"libXss.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libXxf86vm.so.1", X_HOOKS, EXTI_BASE_SHARED},
    {"libdbus-1.so.3", DBUS, EXTI_BASE_SHARED},
    {"libcrypto.so.*", SSL, EXTI_BASE_SHARED},
    {"libcrypto-*.so.*", SSL, EXTI_BASE_SHARED},
    {"libssl.so.*", SSL, EXTI_BASE_SHARED},
    {"libssl-*.so.*", SSL, EXTI_BASE_SHARED},
    {"libsqlite3.so.*", SQLITE, EXTI_BASE_LOCKS},
    {"libsqlite3-*.so.*", SQLITE, EXTI_BASE_LOCKS},
    {"libmpi*.so.*", MPI, EXTI_BASE_SINGLE},
    {"libopen-pal.so.*", MPI, EXTI_BASE_SINGLE},
    {"libopen-rte.so.*", MPI, EXTI_BASE_SINGLE},
    {"libpmix.so.*", MPI, EXTI_BASE_SINGLE},
    {"libjvm.so", JVM, EXTI_BASE_SINGLE},
};

/* Whatever the system has in /usr/lib and /System is shared without an entry of its own here. */
#define SYSTEM "it is part of the system, in dyld's shared cache"
#define VULKAN "its objects belong to Metal and to the process's devices"

/* Names as in Homebrew, conda and wheels; delocate keeps them. */
static const struct entry macho[] = {
    {"/usr/lib/*", SYSTEM, EXTI_BASE_FIXED},
    {"/System/*", SYSTEM, EXTI_BASE_FIXED},
    {"libSystem.*dylib", SYSTEM, EXTI_BASE_FIXED},
    {"libobjc.*dylib", SYSTEM, EXTI_BASE_FIXED},
    {"libgcc_s.*dylib", UNWIND, EXTI_BASE_SHARED},
    {"libunwind.*dylib", UNWIND, EXTI_BASE_SHARED},
    {"libc++.*dylib", CXX, EXTI_BASE_SHARED},
    {"libc++abi.*dylib", CXX, EXTI_BASE_SHARED},
    {"libstdc++.*dylib", CXX, EXTI_BASE_SHARED},
    {"libatomic.*dylib", ATOMIC, EXTI_BASE_SHARED},
    {"libgomp*.dylib", OPENMP_POOL, EXTI_BASE_SHARED},
    {"libomp*.dylib", INTEL_OPENMP, EXTI_BASE_SHARED},
    {"libiomp5*.dylib", INTEL_OPENMP, EXTI_BASE_SHARED},
    {"libclang_rt.*.dylib", SANITIZER, EXTI_BASE_SHARED},
    {"libjemalloc*.dylib", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"libtcmalloc*.dylib", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"libmimalloc*.dylib", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"libtbbmalloc*.dylib", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"libMoltenVK.dylib", VULKAN, EXTI_BASE_SHARED},
    {"libvulkan.*dylib", VULKAN, EXTI_BASE_SHARED},
    {"libglib-2.0.*dylib", GLIB, EXTI_BASE_SHARED},
    {"libgobject-2.0.*dylib", GLIB, EXTI_BASE_SHARED},
    {"libgmodule-2.0.*dylib", GLIB, EXTI_BASE_SHARED},
    {"libgthread-2.0.*dylib", GLIB, EXTI_BASE_SHARED},
    {"libgio-2.0.*dylib", GLIB, EXTI_BASE_SHARED},
    {"libgirepository-*.dylib", GLIB, EXTI_BASE_SHARED},
    {"libgst*-1.0.*dylib", GTYPES, EXTI_BASE_SHARED},
    {"libgdk_pixbuf-2.0.*dylib", GTYPES, EXTI_BASE_SHARED},
    {"libpango*-1.0.*dylib", GTYPES, EXTI_BASE_SHARED},
    {"libatk*-1.0.*dylib", GTYPES, EXTI_BASE_SHARED},
    {"libgdk-*.dylib", GTYPES, EXTI_BASE_SHARED},
    {"libgtk-*.dylib", GTYPES, EXTI_BASE_SHARED},
    {"libffi.*dylib", FFI, EXTI_BASE_SHARED},
    {"libdbus-1.*dylib", DBUS, EXTI_BASE_SHARED},
    {"libcrypto.*dylib", SSL, EXTI_BASE_SHARED},
    {"libssl.*dylib", SSL, EXTI_BASE_SHARED},
    {"libsqlite3.*dylib", SQLITE, EXTI_BASE_SHARED},
    {"libmpi*.dylib", MPI, EXTI_BASE_SHARED},
    {"libopen-pal.*dylib", MPI, EXTI_BASE_SHARED},
    {"libopen-rte.*dylib", MPI, EXTI_BASE_SHARED},
    {"libpmix.*dylib", MPI, EXTI_BASE_SHARED},
    {"libjvm.dylib", JVM, EXTI_BASE_SHARED},
};

/* In wheels, delvewheel puts a hash before ".dll". */
static const struct entry pe[] = {
    {"ucrtbase*.dll", LIBC, EXTI_BASE_FIXED},
    {"api-ms-win-*.dll", LIBC, EXTI_BASE_FIXED},
    {"ext-ms-*.dll", LIBC, EXTI_BASE_FIXED},
    {"ntdll.dll", LIBC, EXTI_BASE_FIXED},
    {"kernel32.dll", LIBC, EXTI_BASE_FIXED},
    {"kernelbase.dll", LIBC, EXTI_BASE_FIXED},
    {"msvcrt.dll", LIBC, EXTI_BASE_FIXED},
    {"vcruntime*.dll", VC, EXTI_BASE_SHARED},
    {"msvcp*.dll", VC, EXTI_BASE_SHARED},
    {"msvcr[0-9]*.dll", VC, EXTI_BASE_SHARED},
    {"concrt*.dll", VC, EXTI_BASE_SHARED},
    {"vccorlib*.dll", VC, EXTI_BASE_SHARED},
    {"mfc[0-9]*.dll", VC, EXTI_BASE_SHARED},
    {"libgcc_s_*.dll", VC, EXTI_BASE_SHARED},
    {"libstdc++-6*.dll", VC, EXTI_BASE_SHARED},
    {"libwinpthread-1*.dll", VC, EXTI_BASE_SHARED},
    {"libc++*.dll", VC, EXTI_BASE_SHARED},
    {"libunwind*.dll", VC, EXTI_BASE_SHARED},
    {"libatomic-1*.dll", ATOMIC, EXTI_BASE_SHARED},
    {"vcomp*.dll", OPENMP_POOL, EXTI_BASE_SHARED},
    {"libgomp-1*.dll", OPENMP_POOL, EXTI_BASE_SHARED},
    {"libomp*.dll", OPENMP_POOL, EXTI_BASE_SHARED},
    {"libiomp5md*.dll", INTEL_OPENMP, EXTI_BASE_SHARED},
    {"clang_rt.*.dll", SANITIZER, EXTI_BASE_SHARED},
    {"jemalloc*.dll", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"mimalloc*.dll", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"tcmalloc*.dll", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"tbbmalloc*.dll", ALLOCATOR_ZONE, EXTI_BASE_SHARED},
    {"nvcuda.dll", GPU, EXTI_BASE_SHARED},
    {"nvcuvid.dll", GPU, EXTI_BASE_SHARED},
    {"nvapi*.dll", GPU, EXTI_BASE_SHARED},
    {"nvml.dll", GPU, EXTI_BASE_SHARED},
    {"opencl.dll", GPU, EXTI_BASE_SHARED},
    {"amdhip64*.dll", GPU, EXTI_BASE_SHARED},
    {"ze_loader.dll", GPU, EXTI_BASE_SHARED},
    {"vulkan-1.dll", GPU, EXTI_BASE_SHARED},
    {"opengl32*.dll", GPU, EXTI_BASE_SHARED},
    {"libegl.dll", GPU, EXTI_BASE_SHARED},
    {"libglesv2.dll", GPU, EXTI_BASE_SHARED},
    {"cudart*.dll", CUDA, EXTI_BASE_SHARED},
    {"cublas*.dll", CUDA, EXTI_BASE_SHARED},
    {"cudnn*.dll", CUDA, EXTI_BASE_SHARED},
    {"cufft*.dll", CUDA, EXTI_BASE_SHARED},
    {"cupti*.dll", CUDA, EXTI_BASE_SHARED},
    {"curand*.dll", CUDA, EXTI_BASE_SHARED},
    {"cusolver*.dll", CUDA, EXTI_BASE_SHARED},
    {"cusparse*.dll", CUDA, EXTI_BASE_SHARED},
    {"nvrtc*.dll", CUDA, EXTI_BASE_SHARED},
    {"nvjitlink*.dll", CUDA, EXTI_BASE_SHARED},
    {"nvtoolsext*.dll", CUDA, EXTI_BASE_SHARED},
    {"*glib-2.0-0*.dll", GLIB, EXTI_BASE_SHARED},
    {"*gobject-2.0-0*.dll", GLIB, EXTI_BASE_SHARED},
    {"*gmodule-2.0-0*.dll", GLIB, EXTI_BASE_SHARED},
    {"*gthread-2.0-0*.dll", GLIB, EXTI_BASE_SHARED},
    {"*gio-2.0-0*.dll", GLIB, EXTI_BASE_SHARED},
    {"*girepository-*.dll", GLIB, EXTI_BASE_SHARED},
    {"*gst*-1.0-0*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*gdk_pixbuf-2.0-0*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*pango*-1.0-0*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*atk-1.0-0*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*gdk-*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*gtk-*.dll", GTYPES, EXTI_BASE_SHARED},
    {"*cairo*-2.dll", DRAWING, EXTI_BASE_SHARED},
    {"msmpi.dll", MPI, EXTI_BASE_SHARED},
    {"impi.dll", MPI, EXTI_BASE_SHARED},
    {"jvm.dll", JVM, EXTI_BASE_SHARED},
};

struct base {
    enum exti_file_format format;
    const struct entry *entries;
    size_t count;
};

static const struct base bases[] = {
    {EXTI_FORMAT_ELF, elf, sizeof elf / sizeof *elf},
    {EXTI_FORMAT_MACHO, macho, sizeof macho / sizeof *macho},
    {EXTI_FORMAT_PE, pe, sizeof pe / sizeof *pe},
};

const char *exti__policy_base(enum exti_file_format format, size_t i, const char **reason,
                              enum exti_base_kind *kind)
{
    const struct base *b = bases;

    while (b < bases + sizeof bases / sizeof *bases && b->format != format)
        b++;
    if (b == bases + sizeof bases / sizeof *bases || i >= b->count)
        return NULL;
    *reason = b->entries[i].reason;
    *kind = b->entries[i].kind;
    return b->entries[i].glob;
}

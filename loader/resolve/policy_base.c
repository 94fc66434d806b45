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
    bool fixed;
};

/* Two kinds of libraries: a process can have only one of them, or shared libraries and their users
 * exchange objects of them that a copy would not know.  Names are those of distributions and of
 * wheels, where auditwheel puts a hash before ".so". */
static const struct entry elf[] = {
    {"ld-linux*.so.*", LIBC, true},
    {"ld64.so.*", LIBC, true},
    {"ld-musl-*.so.1", LIBC, true},
    {"libc.musl-*.so.1", LIBC, true},
    {"libc.so.6", LIBC, true},
    {"libc.so", LIBC, true},
    {"libm.so.6", LIBC, true},
    {"libmvec.so.1", LIBC, true},
    {"libpthread.so.0", LIBC, true},
    {"libdl.so.2", LIBC, true},
    {"librt.so.1", LIBC, true},
    {"libutil.so.1", LIBC, true},
    {"libanl.so.1", LIBC, true},
    {"libresolv.so.2", LIBC, true},
    {"libnsl.so.1", LIBC, true},
    {"libnss_*.so.2", LIBC, true},
    {"libBrokenLocale.so.1", LIBC, true},
    {"libthread_db.so.1", LIBC, true},
    {"libc_malloc_debug.so.0", LIBC, true},
    {"libgcc_s.so.1", UNWIND, false},
    {"libgcc_s-*.so.*", UNWIND, false},
    {"libunwind.so.1", UNWIND, false},
    {"libstdc++.so.6", CXX, false},
    {"libstdc++-*.so.*", CXX, false},
    {"libc++.so.1", CXX, false},
    {"libc++abi.so.1", CXX, false},
    {"libatomic.so.1", ATOMIC, false},
    {"libgomp.so.1", OPENMP, false},
    {"libgomp-*.so.*", OPENMP, false},
    {"libomp.so*", OPENMP, false},
    {"libomp-*.so*", OPENMP, false},
    {"libiomp5*.so", INTEL_OPENMP, false},
    {"lib[alt]san.so.*", SANITIZER, false},
    {"libubsan.so.*", SANITIZER, false},
    {"libclang_rt.*.so", SANITIZER, false},
    {"libjemalloc.so.*", ALLOCATOR, false},
    {"libjemalloc-*.so*", ALLOCATOR, false},
    {"libtcmalloc*.so.*", ALLOCATOR, false},
    {"libmimalloc.so.*", ALLOCATOR, false},
    {"libtbbmalloc*.so.*", ALLOCATOR, false},
    {"libcuda.so.*", GPU, false},
    {"libnvidia-*.so.*", GPU, false},
    {"libnvcuvid.so.*", GPU, false},
    {"libOpenCL.so.1", GPU, false},
    {"libamdhip64.so.*", GPU, false},
    {"libhsa-runtime64.so.*", GPU, false},
    {"libze_loader.so.1", GPU, false},
    {"libvulkan.so.1", GPU, false},
    {"libGL.so.1", GPU, false},
    {"libGLX.so.0", GPU, false},
    {"libGLdispatch.so.0", GPU, false},
    {"libGLESv*.so.*", GPU, false},
    {"libOpenGL.so.0", GPU, false},
    {"libEGL.so.1", GPU, false},
    {"libdrm*.so.*", GPU, false},
    {"libgbm.so.1", GPU, false},
    {"libva*.so.2", GPU, false},
    {"libvdpau.so.1", GPU, false},
    {"libcudart*.so*", CUDA, false},
    {"libcublas*.so*", CUDA, false},
    {"libcudnn*.so*", CUDA, false},
    {"libcufft*.so*", CUDA, false},
    {"libcufile*.so*", CUDA, false},
    {"libcupti*.so*", CUDA, false},
    {"libcurand*.so*", CUDA, false},
    {"libcusolver*.so*", CUDA, false},
    {"libcusparse*.so*", CUDA, false},
    {"libnccl*.so*", CUDA, false},
    {"libnvrtc*.so*", CUDA, false},
    {"libnvJitLink*.so*", CUDA, false},
    {"libnvToolsExt*.so*", CUDA, false},
    {"libglib-2.0.so.0", GLIB, false},
    {"libgobject-2.0.so.0", GLIB, false},
    {"libgmodule-2.0.so.0", GLIB, false},
    {"libgthread-2.0.so.0", GLIB, false},
    {"libgio-2.0.so.0", GLIB, false},
    {"libgirepository-*.so.*", GLIB, false},
    {"libgst*-1.0.so.0", GTYPES, false},
    {"libgdk_pixbuf-2.0.so.0", GTYPES, false},
    {"libpango*-1.0.so.0", GTYPES, false},
    {"libatk*-1.0.so.0", GTYPES, false},
    {"libatspi.so.0", GTYPES, false},
    {"libdbus-glib-1.so.2", GTYPES, false},
    {"libgdk-*.so.*", GTYPES, false},
    {"libgtk-*.so.*", GTYPES, false},
    {"libffi.so.*", FFI, false},
    {"libcairo*.so.2", DRAWING, false},
    {"libfontconfig.so.1", DRAWING, false},
    {"libfreetype.so.6", DRAWING, false},
    {"libharfbuzz*.so.0", DRAWING, false},
    {"libX11.so.6", DISPLAY, false},
    {"libX11-xcb.so.1", DISPLAY, false},
    {"libXau.so.6", DISPLAY, false},
    {"libXdmcp.so.6", DISPLAY, false},
    {"libxcb*.so.*", DISPLAY, false},
    {"libxkbcommon*.so.0", DISPLAY, false},
    {"libwayland-*.so.*", DISPLAY, false},
    {"libICE.so.6", DISPLAY, false},
    {"libSM.so.6", DISPLAY, false},
    {"libXext.so.6", X_HOOKS, false},
    {"libXi.so.6", X_HOOKS, false},
    {"libXrender.so.1", X_HOOKS, false},
    {"libXfixes.so.3", X_HOOKS, false},
    {"libXrandr.so.2", X_HOOKS, false},
    {"libXcursor.so.1", X_HOOKS, false},
    {"libXinerama.so.1", X_HOOKS, false},
    {"libXcomposite.so.1", X_HOOKS, false},
    {"libXdamage.so.1", X_HOOKS, false},
    {"libXtst.so.6", X_HOOKS, false},
    {"libXss.so.1", X_HOOKS, false},
    {"libXxf86vm.so.1", X_HOOKS, false},
    {"libdbus-1.so.3", DBUS, false},
    {"libcrypto.so.*", SSL, false},
    {"libcrypto-*.so.*", SSL, false},
    {"libssl.so.*", SSL, false},
    {"libssl-*.so.*", SSL, false},
    {"libsqlite3.so.*", SQLITE, false},
    {"libsqlite3-*.so.*", SQLITE, false},
    {"libmpi*.so.*", MPI, false},
    {"libopen-pal.so.*", MPI, false},
    {"libopen-rte.so.*", MPI, false},
    {"libpmix.so.*", MPI, false},
    {"libjvm.so", JVM, false},
};

/* Whatever the system has in /usr/lib and /System is shared without an entry of its own here. */
#define SYSTEM "it is part of the system, in dyld's shared cache"
#define VULKAN "its objects belong to Metal and to the process's devices"

/* Names as in Homebrew, conda and wheels; delocate keeps them. */
static const struct entry macho[] = {
    {"/usr/lib/*", SYSTEM, true},
    {"/System/*", SYSTEM, true},
    {"libSystem.*dylib", SYSTEM, true},
    {"libobjc.*dylib", SYSTEM, true},
    {"libgcc_s.*dylib", UNWIND, false},
    {"libunwind.*dylib", UNWIND, false},
    {"libc++.*dylib", CXX, false},
    {"libc++abi.*dylib", CXX, false},
    {"libstdc++.*dylib", CXX, false},
    {"libatomic.*dylib", ATOMIC, false},
    {"libgomp*.dylib", OPENMP_POOL, false},
    {"libomp*.dylib", INTEL_OPENMP, false},
    {"libiomp5*.dylib", INTEL_OPENMP, false},
    {"libclang_rt.*.dylib", SANITIZER, false},
    {"libjemalloc*.dylib", ALLOCATOR_ZONE, false},
    {"libtcmalloc*.dylib", ALLOCATOR_ZONE, false},
    {"libmimalloc*.dylib", ALLOCATOR_ZONE, false},
    {"libtbbmalloc*.dylib", ALLOCATOR_ZONE, false},
    {"libMoltenVK.dylib", VULKAN, false},
    {"libvulkan.*dylib", VULKAN, false},
    {"libglib-2.0.*dylib", GLIB, false},
    {"libgobject-2.0.*dylib", GLIB, false},
    {"libgmodule-2.0.*dylib", GLIB, false},
    {"libgthread-2.0.*dylib", GLIB, false},
    {"libgio-2.0.*dylib", GLIB, false},
    {"libgirepository-*.dylib", GLIB, false},
    {"libgst*-1.0.*dylib", GTYPES, false},
    {"libgdk_pixbuf-2.0.*dylib", GTYPES, false},
    {"libpango*-1.0.*dylib", GTYPES, false},
    {"libatk*-1.0.*dylib", GTYPES, false},
    {"libgdk-*.dylib", GTYPES, false},
    {"libgtk-*.dylib", GTYPES, false},
    {"libffi.*dylib", FFI, false},
    {"libdbus-1.*dylib", DBUS, false},
    {"libcrypto.*dylib", SSL, false},
    {"libssl.*dylib", SSL, false},
    {"libsqlite3.*dylib", SQLITE, false},
    {"libmpi*.dylib", MPI, false},
    {"libopen-pal.*dylib", MPI, false},
    {"libopen-rte.*dylib", MPI, false},
    {"libpmix.*dylib", MPI, false},
    {"libjvm.dylib", JVM, false},
};

/* In wheels, delvewheel puts a hash before ".dll". */
static const struct entry pe[] = {
    {"ucrtbase*.dll", LIBC, true},
    {"api-ms-win-*.dll", LIBC, true},
    {"ext-ms-*.dll", LIBC, true},
    {"ntdll.dll", LIBC, true},
    {"kernel32.dll", LIBC, true},
    {"kernelbase.dll", LIBC, true},
    {"msvcrt.dll", LIBC, true},
    {"vcruntime*.dll", VC, false},
    {"msvcp*.dll", VC, false},
    {"msvcr[0-9]*.dll", VC, false},
    {"concrt*.dll", VC, false},
    {"vccorlib*.dll", VC, false},
    {"mfc[0-9]*.dll", VC, false},
    {"libgcc_s_*.dll", VC, false},
    {"libstdc++-6*.dll", VC, false},
    {"libwinpthread-1*.dll", VC, false},
    {"libc++*.dll", VC, false},
    {"libunwind*.dll", VC, false},
    {"libatomic-1*.dll", ATOMIC, false},
    {"vcomp*.dll", OPENMP_POOL, false},
    {"libgomp-1*.dll", OPENMP_POOL, false},
    {"libomp*.dll", OPENMP_POOL, false},
    {"libiomp5md*.dll", INTEL_OPENMP, false},
    {"clang_rt.*.dll", SANITIZER, false},
    {"jemalloc*.dll", ALLOCATOR_ZONE, false},
    {"mimalloc*.dll", ALLOCATOR_ZONE, false},
    {"tcmalloc*.dll", ALLOCATOR_ZONE, false},
    {"tbbmalloc*.dll", ALLOCATOR_ZONE, false},
    {"nvcuda.dll", GPU, false},
    {"nvcuvid.dll", GPU, false},
    {"nvapi*.dll", GPU, false},
    {"nvml.dll", GPU, false},
    {"opencl.dll", GPU, false},
    {"amdhip64*.dll", GPU, false},
    {"ze_loader.dll", GPU, false},
    {"vulkan-1.dll", GPU, false},
    {"opengl32*.dll", GPU, false},
    {"libegl.dll", GPU, false},
    {"libglesv2.dll", GPU, false},
    {"cudart*.dll", CUDA, false},
    {"cublas*.dll", CUDA, false},
    {"cudnn*.dll", CUDA, false},
    {"cufft*.dll", CUDA, false},
    {"cupti*.dll", CUDA, false},
    {"curand*.dll", CUDA, false},
    {"cusolver*.dll", CUDA, false},
    {"cusparse*.dll", CUDA, false},
    {"nvrtc*.dll", CUDA, false},
    {"nvjitlink*.dll", CUDA, false},
    {"nvtoolsext*.dll", CUDA, false},
    {"*glib-2.0-0*.dll", GLIB, false},
    {"*gobject-2.0-0*.dll", GLIB, false},
    {"*gmodule-2.0-0*.dll", GLIB, false},
    {"*gthread-2.0-0*.dll", GLIB, false},
    {"*gio-2.0-0*.dll", GLIB, false},
    {"*girepository-*.dll", GLIB, false},
    {"*gst*-1.0-0*.dll", GTYPES, false},
    {"*gdk_pixbuf-2.0-0*.dll", GTYPES, false},
    {"*pango*-1.0-0*.dll", GTYPES, false},
    {"*atk-1.0-0*.dll", GTYPES, false},
    {"*gdk-*.dll", GTYPES, false},
    {"*gtk-*.dll", GTYPES, false},
    {"*cairo*-2.dll", DRAWING, false},
    {"msmpi.dll", MPI, false},
    {"impi.dll", MPI, false},
    {"jvm.dll", JVM, false},
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
                              bool *fixed)
{
    const struct base *b = bases;

    while (b < bases + sizeof bases / sizeof *bases && b->format != format)
        b++;
    if (b == bases + sizeof bases / sizeof *bases || i >= b->count)
        return NULL;
    *reason = b->entries[i].reason;
    *fixed = b->entries[i].fixed;
    return b->entries[i].glob;
}

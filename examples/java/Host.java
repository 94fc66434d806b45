import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Four CPython contexts in a Java program: numpy in each, on a thread each, on Java's memory.
 * The structs are those of extisolate/python.h on 64-bit systems, as far as the program uses them.
 *
 * <p>java --enable-native-access=ALL-UNNAMED Host.java libextisolate-python.so.0 [PYTHON]
 */
public class Host {
    static final StructLayout ERROR =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("code"),
                    JAVA_INT,
                    JAVA_LONG,
                    MemoryLayout.sequenceLayout(512, JAVA_BYTE).withName("file"),
                    MemoryLayout.sequenceLayout(512, JAVA_BYTE).withName("message"));

    static final StructLayout BUFFER_INFO =
            MemoryLayout.structLayout(
                    JAVA_LONG.withName("size"),
                    ADDRESS.withName("data"),
                    JAVA_LONG.withName("length"),
                    JAVA_LONG.withName("item_size"),
                    JAVA_INT,
                    JAVA_INT,
                    ADDRESS.withName("format"));

    static final StructLayout CALL =
            MemoryLayout.structLayout(
                    JAVA_LONG.withName("size"),
                    ADDRESS.withName("function"),
                    ADDRESS,
                    ADDRESS.withName("values"),
                    JAVA_LONG.withName("args"));

    static final StructLayout VALUE =
            MemoryLayout.structLayout(
                    JAVA_LONG.withName("size"),
                    JAVA_INT.withName("kind"),
                    JAVA_INT,
                    JAVA_LONG,
                    JAVA_DOUBLE,
                    ADDRESS.withName("bytes"));

    static final StructLayout CLOSED =
            MemoryLayout.structLayout(
                    JAVA_LONG.withName("size"), JAVA_LONG, JAVA_LONG.withName("mapped"));

    static final int STR = 4;
    static final int TUPLE = 6;
    static final MemorySegment NULL = MemorySegment.NULL;
    static final int CONTEXTS = 4;

    static final String CODE =
            """
            import numpy

            def scale(memory, factor):
                array = numpy.asarray(memory)
                array *= factor
                numpy_is = f'numpy {numpy.__version__} at {id(numpy.ndarray):#x}'
                return f'{numpy_is}: sum {array.sum():g}'
            """;

    private final SymbolLookup library;

    Host(String path) {
        library = SymbolLookup.libraryLookup(path, Arena.global());
    }

    static MemorySegment struct(Arena arena, StructLayout layout) {
        MemorySegment struct = arena.allocate(layout);
        struct.set(JAVA_LONG, 0, layout.byteSize());
        return struct;
    }

    static long at(StructLayout layout, String member) {
        return layout.byteOffset(MemoryLayout.PathElement.groupElement(member));
    }

    /** Calls a C function. Numbers are passed as they are, a string as a pointer to its bytes. */
    Object call(Arena arena, MemoryLayout returned, String name, Object... args) {
        MemoryLayout[] layouts = new MemoryLayout[args.length];
        Object[] values = new Object[args.length];
        for (int i = 0; i < args.length; i++) {
            values[i] = args[i] instanceof String text ? arena.allocateFrom(text) : args[i];
            layouts[i] =
                    switch (values[i]) {
                        case Integer n -> JAVA_INT;
                        case Long n -> JAVA_LONG;
                        case Double n -> JAVA_DOUBLE;
                        default -> ADDRESS;
                    };
        }
        FunctionDescriptor type =
                returned == null
                        ? FunctionDescriptor.ofVoid(layouts)
                        : FunctionDescriptor.of(returned, layouts);
        MemorySegment address = library.findOrThrow(name);
        MethodHandle function = Linker.nativeLinker().downcallHandle(address, type);
        try {
            return function.invokeWithArguments(values);
        } catch (Throwable e) {
            throw new AssertionError(name, e);
        }
    }

    /** Calls a function that can fail, whose last argument is a struct exti_error. */
    void check(Arena arena, String name, Object... args) {
        MemorySegment error = arena.allocate(ERROR);
        Object[] all = Arrays.copyOf(args, args.length + 1);
        all[args.length] = error;
        if ((int) call(arena, JAVA_INT, name, all) != 0) {
            String file = error.getString(at(ERROR, "file"));
            String message = error.getString(at(ERROR, "message"));
            throw new IllegalStateException(name + ": " + file + ": " + message);
        }
    }

    /** Calls a function that can fail and whose first argument is where it puts its result. */
    MemorySegment make(Arena arena, String name, Object... args) {
        MemorySegment out = arena.allocate(ADDRESS);
        Object[] all = new Object[args.length + 1];
        all[0] = out;
        System.arraycopy(args, 0, all, 1, args.length);
        check(arena, name, all);
        return out.get(ADDRESS, 0);
    }

    /** Has numpy multiply the memory by `factor`, in place, on this thread; gives what it says. */
    String scale(MemorySegment context, MemorySegment memory, double factor) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = struct(arena, BUFFER_INFO);
            info.set(ADDRESS, at(BUFFER_INFO, "data"), memory);
            info.set(JAVA_LONG, at(BUFFER_INFO, "length"), memory.byteSize());
            info.set(JAVA_LONG, at(BUFFER_INFO, "item_size"), JAVA_DOUBLE.byteSize());
            info.set(ADDRESS, at(BUFFER_INFO, "format"), arena.allocateFrom("d"));
            MemorySegment buffer = make(arena, "extipy_buffer_new", info, NULL, NULL);

            MemorySegment values = make(arena, "extipy_values_new");
            MemorySegment items =
                    arena.allocateFrom(
                            JAVA_LONG,
                            (long) call(arena, JAVA_LONG, "extipy_buffer", values, buffer),
                            (long) call(arena, JAVA_LONG, "extipy_float", values, factor));
            MemorySegment call = struct(arena, CALL);
            call.set(ADDRESS, at(CALL, "function"), arena.allocateFrom("__main__:scale"));
            call.set(ADDRESS, at(CALL, "values"), values);
            call.set(
                    JAVA_LONG,
                    at(CALL, "args"),
                    (long) call(arena, JAVA_LONG, "extipy_container", values, TUPLE, items, 2L));

            check(arena, "extipy_exec", context, CODE, NULL);
            MemorySegment result = arena.allocate(ADDRESS);
            check(arena, "extipy_call", context, call, result, NULL);
            MemorySegment value = struct(arena, VALUE);
            call(arena, JAVA_INT, "extipy_value", result.get(ADDRESS, 0), 1L, value);
            if (value.get(JAVA_INT, at(VALUE, "kind")) != STR) {
                throw new IllegalStateException("scale returned no text");
            }
            MemorySegment bytes = value.get(ADDRESS, at(VALUE, "bytes"));
            String text = bytes.reinterpret(Long.MAX_VALUE).getString(0);
            call(arena, null, "extipy_values_free", result.get(ADDRESS, 0));
            call(arena, null, "extipy_values_free", values);
            call(arena, null, "extipy_buffer_release", buffer);
            // To Java a thread has ended a little before the system's thread has.
            check(arena, "extipy_detach", context);
            return text;
        }
    }

    /** Runs `scale` in each context at once, on a thread and on memory of its own. */
    void scaleAll(Arena arena, List<MemorySegment> contexts) throws Exception {
        List<MemorySegment> memories = new ArrayList<>();
        List<Callable<String>> tasks = new ArrayList<>();
        for (MemorySegment context : contexts) {
            MemorySegment memory = arena.allocateFrom(JAVA_DOUBLE, 1, 2, 3);
            double factor = memories.size() + 1;
            memories.add(memory);
            tasks.add(() -> scale(context, memory, factor));
        }
        List<String> said = new ArrayList<>();
        try (var threads = Executors.newFixedThreadPool(contexts.size())) {
            for (Future<String> one : threads.invokeAll(tasks)) {
                said.add(one.get());
            }
        }
        for (int i = 0; i < said.size(); i++) {
            String memory = Arrays.toString(memories.get(i).toArray(JAVA_DOUBLE));
            System.out.printf("context %d: %s, and the memory is %s%n", i, said.get(i), memory);
        }
    }

    public static void main(String[] args) throws Exception {
        Host host = new Host(args[0]);
        // Contexts read and write its memory until they are closed.
        try (Arena arena = Arena.ofShared()) {
            String executable = args.length > 1 ? args[1] : "/usr/bin/python3";
            MemorySegment python = host.make(arena, "extipy_find", executable);
            List<MemorySegment> contexts = new ArrayList<>();
            for (int i = 0; i < CONTEXTS; i++) {
                contexts.add(host.make(arena, "extipy_open", python, NULL));
            }
            host.scaleAll(arena, contexts);
            for (MemorySegment context : contexts) {
                MemorySegment closed = struct(arena, CLOSED);
                host.check(arena, "extipy_close", context, NULL, NULL, closed);
                long mapped = closed.get(JAVA_LONG, at(CLOSED, "mapped"));
                System.out.printf("closed: %d files stay mapped%n", mapped);
            }
            host.call(arena, null, "extipy_python_free", python);
        }
    }
}

package javaobjects;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** What Python code does with Java objects, by their public fields and methods. C code calls it without a GIL. */
final class Reflection {
    private static final Object[] UNFIT = {};
    private static final ClassValue<Map<String, List<Method>>> METHODS =
            new ClassValue<>() {
                @Override
                protected Map<String, List<Method>> computeValue(Class<?> type) {
                    return methodsOf(type).collect(Collectors.groupingBy(Method::getName));
                }
            };
    private static final ClassValue<List<Method>> FUNCTION =
            new ClassValue<>() {
                @Override
                protected List<Method> computeValue(Class<?> type) {
                    return functionOf(type);
                }
            };

    private Reflection() {}

    static Object invoke(int request, Object object, String name, Object[] args) throws Throwable {
        switch (Request.values()[request]) {
            case CALL:
                return call(object, name, args);
            case GET:
                return get(object, name);
            case SET:
                return set(object, name, args[0]);
            case STR:
                return String.valueOf(object);
            case EQUALS:
                return object.equals(args[0]);
            default:
                return object.hashCode();
        }
    }

    /** What Python code is told of a Java exception. */
    static String describe(Throwable thrown) {
        return String.valueOf(thrown);
    }

    static long longValue(Number number) {
        return number.longValue();
    }

    static double doubleValue(Number number) {
        return number.doubleValue();
    }

    // ---- fields

    private static Object get(Object object, String name) throws IllegalAccessException {
        Field field = fieldOf(object, name);
        if (field != null) return field.get(object);
        return METHODS.get(object.getClass()).containsKey(name) ? Marker.METHOD : Marker.ABSENT;
    }

    private static Object set(Object object, String name, Object value) throws IllegalAccessException {
        Field field = fieldOf(object, name);
        if (field == null) return Marker.ABSENT;
        Object fitting = fit(field.getType(), value);
        if (fitting == UNFIT) throw new IllegalArgumentException(name + " is a " + field.getType().getName());
        field.set(object, fitting);
        return null;
    }

    private static Field fieldOf(Object object, String name) {
        try {
            Field field = object.getClass().getField(name);
            return field.canAccess(Modifier.isStatic(field.getModifiers()) ? null : object) ? field : null;
        } catch (NoSuchFieldException e) {
            return null;
        }
    }

    // ---- methods

    private static Object call(Object object, String name, Object[] args) throws Throwable {
        if (name == null && object instanceof PyCallable) return ((PyCallable) object).call(args);
        List<Method> methods =
                name == null
                        ? FUNCTION.get(object.getClass())
                        : METHODS.get(object.getClass()).getOrDefault(name, List.of());
        if (methods.isEmpty())
            throw new UnsupportedOperationException(
                    name == null
                            ? object.getClass().getName() + " has no functional interface to call it by"
                            : object.getClass().getName() + " has no public method " + name);
        for (Method method : methods) {
            Object[] fitting = fitAll(method, args);
            if (fitting != UNFIT) return callMethod(method, object, fitting);
        }
        throw new IllegalArgumentException("no " + methods.get(0).getName() + " takes " + Arrays.toString(args));
    }

    private static Object callMethod(Method method, Object object, Object[] args) throws Throwable {
        try {
            return method.invoke(object, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /** By the classes and interfaces that can be seen from here, since a lambda's own one cannot. */
    private static java.util.stream.Stream<Method> methodsOf(Class<?> type) {
        return typesOf(type).stream()
                .filter(Reflection::isSeen)
                .flatMap(t -> Arrays.stream(t.getMethods()))
                .filter(m -> isSeen(m.getDeclaringClass()));
    }

    private static boolean isSeen(Class<?> type) {
        return Modifier.isPublic(type.getModifiers())
                && (type.getEnclosingClass() == null || isSeen(type.getEnclosingClass()))
                && type.getModule().isExported(type.getPackageName());
    }

    private static Set<Class<?>> typesOf(Class<?> type) {
        Set<Class<?>> all = new LinkedHashSet<>();
        for (Class<?> t = type; t != null; t = t.getSuperclass()) all.add(t);
        for (Class<?> t : List.copyOf(all)) addInterfaces(all, t);
        return all;
    }

    private static void addInterfaces(Set<Class<?>> all, Class<?> type) {
        for (Class<?> i : type.getInterfaces()) if (all.add(i)) addInterfaces(all, i);
    }

    /** The one abstract method of one of its interfaces, or none. */
    private static List<Method> functionOf(Class<?> type) {
        for (Class<?> t : typesOf(type)) {
            if (!t.isInterface() || !isSeen(t)) continue;
            List<Method> methods = new ArrayList<>();
            for (Method m : t.getMethods()) if (Modifier.isAbstract(m.getModifiers()) && !isOfObject(m)) methods.add(m);
            if (methods.size() == 1) return methods;
        }
        return List.of();
    }

    private static boolean isOfObject(Method method) {
        try {
            Object.class.getMethod(method.getName(), method.getParameterTypes());
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    // ---- arguments

    private static Object[] fitAll(Method method, Object[] args) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != args.length) return UNFIT;
        Object[] fitting = new Object[args.length];
        for (int i = 0; i < args.length; i++) {
            fitting[i] = fit(types[i], args[i]);
            if (fitting[i] == UNFIT) return UNFIT;
        }
        return fitting;
    }

    /** The value as the type has it, or UNFIT: no number is changed. */
    private static Object fit(Class<?> type, Object value) {
        if (value == null) return type.isPrimitive() ? UNFIT : null;
        if (type.isInstance(value)) return value;
        if (type == boolean.class && value instanceof Boolean) return value;
        if (value instanceof Long) return fitWhole(type, (Long) value);
        if (value instanceof Double && type == double.class) return value;
        if (value instanceof Double && (type == float.class || type == Float.class))
            return ((Double) value).floatValue();
        return UNFIT;
    }

    private static Object fitWhole(Class<?> type, long value) {
        if (type == long.class) return value;
        if ((type == int.class || type == Integer.class) && value == (int) value) return (int) value;
        if ((type == short.class || type == Short.class) && value == (short) value) return (short) value;
        if ((type == byte.class || type == Byte.class) && value == (byte) value) return (byte) value;
        if (type == double.class || type == Double.class) return (double) value;
        return UNFIT;
    }
}

//! As much of libextisolate-python in safe Rust as the example needs.

#[allow(dead_code, non_camel_case_types, non_upper_case_globals, non_snake_case)]
mod ffi {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

use std::ffi::{c_int, c_void, CStr, CString};
use std::mem::{self, size_of, ManuallyDrop};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::{fmt, ptr, slice};

pub struct Error(String);

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Result<T> = std::result::Result<T, Error>;

fn text(message: impl fmt::Display) -> Error {
    Error(message.to_string())
}

/// Turns a call's status into a result.
fn check(call: impl FnOnce(*mut ffi::exti_error) -> c_int) -> Result<()> {
    // SAFETY: integers and characters only; the library writes text with a NUL.
    unsafe {
        let mut error: ffi::exti_error = mem::zeroed();
        if call(&mut error) == 0 {
            return Ok(());
        }
        let name = ffi::extipy_code_name(error.code);
        let [name, file, message] = [name, error.file.as_ptr(), error.message.as_ptr()]
            .map(|text| CStr::from_ptr(text).to_string_lossy());
        Err(Error(format!("{name}: {file}: {message}")))
    }
}

/// An installation of CPython.
pub struct Python(*mut ffi::extipy_python);

// SAFETY: the header lets any thread use it.
unsafe impl Send for Python {}
unsafe impl Sync for Python {}

impl Python {
    pub fn find(executable: &str) -> Result<Python> {
        let executable = CString::new(executable).map_err(text)?;
        let mut out = ptr::null_mut();
        check(|err| unsafe { ffi::extipy_find(&mut out, executable.as_ptr(), err) })?;
        Ok(Python(out))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        unsafe { ffi::extipy_python_free(self.0) }
    }
}

/// A reference to a buffer of the library.
struct Buffer(*mut ffi::extipy_buffer);

// SAFETY: any thread may change the count of references.
unsafe impl Send for Buffer {}
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        unsafe { ffi::extipy_buffer_release(self.0) }
    }
}

/// A vector that contexts read and write, and which Rust does not look at meanwhile.
pub struct Lent {
    buffer: Buffer,
    back: Receiver<Vec<f64>>,
}

struct Loan {
    data: Vec<f64>,
    to: Sender<Vec<f64>>,
}

unsafe extern "C" fn give_back(user: *mut c_void) {
    let Loan { data, to } = *unsafe { Box::from_raw(user.cast::<Loan>()) };
    // If nobody waits for the vector, it is dropped here.
    let _ = to.send(data);
}

impl Lent {
    pub fn new(mut data: Vec<f64>) -> Result<Lent> {
        let (to, back) = channel();
        let info = ffi::extipy_buffer_info {
            size: size_of::<ffi::extipy_buffer_info>() as _,
            data: data.as_mut_ptr().cast(),
            length: (data.len() * size_of::<f64>()) as _,
            item_size: size_of::<f64>() as _,
            format: c"d".as_ptr(),
            // SAFETY: zeros and null pointers are the defaults.
            ..unsafe { mem::zeroed() }
        };
        let user = Box::into_raw(Box::new(Loan { data, to })).cast();
        let mut raw = ptr::null_mut();
        check(|err| unsafe { ffi::extipy_buffer_new(&mut raw, &info, Some(give_back), user, err) })
            // SAFETY: a call that fails keeps nothing.
            .inspect_err(|_| drop(unsafe { Box::from_raw(user.cast::<Loan>()) }))?;
        Ok(Lent { buffer: Buffer(raw), back })
    }

    /// Ends the loan: gives the vector back, unless a context still has a view of it.
    pub fn take_back(self) -> Result<Vec<f64>> {
        drop(self.buffer);
        self.back.try_recv().map_err(|_| text("a context still has a view of the vector"))
    }
}

/// What goes into a call.
pub enum Arg<'a> {
    Float(f64),
    Memory(&'a Lent),
}

/// What comes out of a call.
pub enum Value {
    Float(f64),
    Str(String),
    Other,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Float(real) => real.fmt(f),
            Value::Str(text) => text.fmt(f),
            Value::Other => f.write_str("a value of another type"),
        }
    }
}

struct Values(*mut ffi::extipy_values);

impl Values {
    /// A tuple of `args`, and its number.  What is wrong with it the call will say.
    fn of(args: &[Arg]) -> Result<(Values, usize)> {
        let mut raw = ptr::null_mut();
        check(|err| unsafe { ffi::extipy_values_new(&mut raw, err) })?;
        let values = Values(raw);
        let items: Vec<_> = args
            .iter()
            .map(|arg| match arg {
                Arg::Float(real) => unsafe { ffi::extipy_float(raw, *real) },
                Arg::Memory(lent) => unsafe { ffi::extipy_buffer(raw, lent.buffer.0) },
            })
            .collect();
        let count = items.len() as _;
        let tuple = unsafe { ffi::extipy_container(raw, ffi::EXTIPY_TUPLE, items.as_ptr(), count) };
        Ok((values, tuple as usize))
    }

    fn first(&self) -> Result<Value> {
        // SAFETY: zeros and null pointers; what the library points to lives as long as the set.
        unsafe {
            let mut value: ffi::extipy_value = mem::zeroed();
            value.size = size_of::<ffi::extipy_value>() as _;
            if ffi::extipy_value(self.0, 1, &mut value) != 0 {
                return Err(text("the call gave no value"));
            }
            Ok(match value.kind {
                ffi::EXTIPY_FLOAT => Value::Float(value.real),
                ffi::EXTIPY_STR => {
                    let bytes = slice::from_raw_parts(value.bytes.cast(), value.length as usize);
                    Value::Str(String::from_utf8_lossy(bytes).into_owned())
                }
                _ => Value::Other,
            })
        }
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        unsafe { ffi::extipy_values_free(self.0) }
    }
}

/// An interpreter with a GIL and extension modules of its own.
pub struct Context(*mut ffi::extipy_ctx);

// SAFETY: the header lets any threads call it at the same time.
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    pub fn open(python: &Python) -> Result<Context> {
        let mut out = ptr::null_mut();
        check(|err| unsafe { ffi::extipy_open(&mut out, python.0, ptr::null(), err) })?;
        Ok(Context(out))
    }

    pub fn exec(&self, source: &str) -> Result<()> {
        let source = CString::new(source).map_err(text)?;
        check(|err| unsafe { ffi::extipy_exec(self.0, source.as_ptr(), ptr::null_mut(), err) })
    }

    /// Calls `function`, named "module:qualname", on this thread.
    pub fn call(&self, function: &str, args: &[Arg]) -> Result<Value> {
        let function = CString::new(function).map_err(text)?;
        let (values, tuple) = Values::of(args)?;
        let call = ffi::extipy_call {
            size: size_of::<ffi::extipy_call>() as _,
            function: function.as_ptr(),
            values: values.0,
            args: tuple as _,
            // SAFETY: zeros and null pointers are the defaults.
            ..unsafe { mem::zeroed() }
        };
        let mut result = ptr::null_mut();
        check(|err| unsafe { ffi::extipy_call(self.0, &call, &mut result, ptr::null_mut(), err) })?;
        Values(result).first()
    }

    /// Ends the interpreter; gives how many of its files stay mapped.
    pub fn close(self) -> Result<usize> {
        let context = ManuallyDrop::new(self);
        // SAFETY: zeros are the defaults; `self` is gone, so nobody calls the context any more.
        let mut closed: ffi::extipy_closed = unsafe { mem::zeroed() };
        closed.size = size_of::<ffi::extipy_closed>() as _;
        check(|err| unsafe {
            ffi::extipy_close(context.0, None, ptr::null_mut(), &mut closed, err)
        })?;
        Ok(closed.mapped as usize)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe {
            ffi::extipy_close(self.0, None, ptr::null_mut(), ptr::null_mut(), ptr::null_mut())
        };
    }
}

//! Four CPython contexts in a Rust program: numpy in each, on a thread each, on lent vectors.

mod python;

use python::{Arg, Context, Lent, Python, Result};
use std::{env, thread};

const CONTEXTS: usize = 4;

const CODE: &str = "
import numpy

def scale(memory, factor):
    array = numpy.asarray(memory)
    array *= factor
    return float(array.sum())

def where():
    return f'numpy {numpy.__version__} at {id(numpy.ndarray):#x}'
";

/// Lends `data` to the context, whose numpy multiplies it by `factor` in place.
fn scale(context: &Context, data: Vec<f64>, factor: f64) -> Result<String> {
    let place = data.as_ptr();
    let lent = Lent::new(data)?;
    context.exec(CODE)?;
    let numpy = context.call("__main__:where", &[])?;
    let sum = context.call("__main__:scale", &[Arg::Memory(&lent), Arg::Float(factor)])?;
    let data = lent.take_back()?;
    let copied = if data.as_ptr() == place { "not copied" } else { "copied" };
    Ok(format!("{numpy}: sum {sum}, and the vector, {copied}, is {data:?}"))
}

fn main() -> Result<()> {
    let executable = env::args().nth(1).unwrap_or("/usr/bin/python3".into());
    let python = Python::find(&executable)?;
    let contexts = (0..CONTEXTS).map(|_| Context::open(&python)).collect::<Result<Vec<_>>>()?;

    thread::scope(|scope| {
        let run =
            |(i, context)| scope.spawn(move || scale(context, vec![1.0, 2.0, 3.0], (i + 1) as f64));
        let threads: Vec<_> = contexts.iter().enumerate().map(run).collect();
        for (i, thread) in threads.into_iter().enumerate() {
            // Once it is joined, it is a thread of no context any more.
            println!("context {i}: {}", thread.join().expect("scale does not panic")?);
        }
        Ok(())
    })?;
    for context in contexts {
        println!("closed: {} files stay mapped", context.close()?);
    }
    Ok(())
}

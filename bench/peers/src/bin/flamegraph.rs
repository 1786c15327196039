//! Draws a flame graph from collapsed stacks: `flamegraph STACKS SVG`. For peers that do not draw one themselves.

use std::fs::File;
use std::io::{BufReader, BufWriter};

use inferno::flamegraph::{Options, from_reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let stacks = arguments.next().ok_or("flamegraph STACKS SVG")?;
    let picture = arguments.next().ok_or("flamegraph STACKS SVG")?;
    let (reader, writer) = (
        BufReader::new(File::open(stacks)?),
        BufWriter::new(File::create(picture)?),
    );
    from_reader(&mut Options::default(), reader, writer)?;
    Ok(())
}

//! zstd's C library: compresses and decompresses at several levels, with a dictionary, and on several threads.

use programs::{Random, text};

fn main() -> std::io::Result<()> {
    let mut random = Random(2);
    let samples: Vec<Vec<u8>> = (0..500)
        .map(|_| text(&mut random, 200).into_bytes())
        .collect();
    let dictionary = zstd::dict::from_samples(&samples, 16 << 10)?;
    let mut packed = 0;
    for (number, sample) in samples.iter().enumerate() {
        let level = [1, 3, 9][number % 3];
        let mut small = zstd::bulk::Compressor::with_dictionary(level, &dictionary)?;
        let bytes = small.compress(sample)?;
        packed += bytes.len();
        let mut large = zstd::bulk::Decompressor::with_dictionary(&dictionary)?;
        assert_eq!(&large.decompress(&bytes, 1 << 20)?, sample);
    }
    let threads: Vec<_> = samples
        .chunks(125)
        .map(|part| {
            let part = part.concat();
            std::thread::spawn(move || -> std::io::Result<usize> {
                let mut sum = 0;
                for level in [-5, 1, 6, 12] {
                    let bytes = zstd::encode_all(&part[..], level)?;
                    assert_eq!(zstd::decode_all(&bytes[..])?, part);
                    sum += bytes.len();
                }
                Ok(sum)
            })
        })
        .collect();
    for thread in threads {
        packed += thread.join().unwrap()?;
    }
    println!("packed to {packed} bytes");
    Ok(())
}

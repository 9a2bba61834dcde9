//! Reader of the MNIST images and labels in IDX files; it normalizes the images to drawings.

use std::error::Error;
use std::fs;
use std::path::Path;

use knn::{Bits, Grey};

/// Drawings and their digits, in the order of the files.
pub(crate) struct Mnist {
    pub(crate) drawings: Vec<Bits>,
    pub(crate) digits: Vec<u8>,
}

impl Mnist {
    /// Reads the files of a part: `train` or `t10k`.
    pub(crate) fn read(folder: &Path, part: &str) -> Result<Self, Box<dyn Error>> {
        let images = fs::read(folder.join(format!("{part}-images-idx3-ubyte")))?;
        let labels = fs::read(folder.join(format!("{part}-labels-idx1-ubyte")))?;
        let ([0x803, count, height, width], pixels) = header(&images)? else {
            return Err("the images are not an IDX file of three dimensions of bytes".into());
        };
        let ([0x801, labels_count], digits) = header(&labels)? else {
            return Err("the labels are not an IDX file of bytes".into());
        };
        if labels_count != count || digits.len() != count || pixels.len() != count * height * width
        {
            return Err("the images and the labels do not fit together".into());
        }
        let images = pixels.chunks(height * width);
        let drawings = images.map(|image| Grey::new(width, height, image)?.normalize());
        Ok(Self { drawings: drawings.collect::<Result<_, _>>()?, digits: digits.to_vec() })
    }
}

/// Parses the first `N` numbers of a file. Returns them and the rest.
fn header<const N: usize>(file: &[u8]) -> Result<([usize; N], &[u8]), &'static str> {
    let (numbers, rest) = file.split_at_checked(4 * N).ok_or("a file is too short")?;
    let mut header = [0; N];
    for (number, bytes) in header.iter_mut().zip(numbers.as_chunks().0) {
        *number = u32::from_be_bytes(*bytes) as usize;
    }
    Ok((header, rest))
}

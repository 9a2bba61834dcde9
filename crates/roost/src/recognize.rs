//! `roost recognize`: recognizes drawings in files, without a server.

use std::fs;
use std::path::{Path, PathBuf};

use crate::output::{note, out};
use anyhow::anyhow;
use api::drawing::{self, ImageError};
use clap::Args;
use knn::{Bits, K, Samples};

/// Recognize drawings in files with the built-in samples of digits.
///
/// A file is a PNG or JPEG image of one drawing, dark on light or light on dark; or a text of 1,024 digits 0 and 1 (32
/// rows of 32 pixels, 1 for ink), or of 256 hexadecimal digits. Prints the label, the number of nearest samples with
/// that label, and the normalized drawing. If a file is unreadable, the command reports it and continues with the
/// others.
#[derive(Args)]
pub(crate) struct Recognize {
    /// Images or text files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Number of nearest samples that vote
    #[arg(long, value_name = "N", default_value_t = K::DEFAULT.count(), value_parser = neighbors)]
    k: usize,
}

impl Recognize {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (digits, k) = (knn::digits(), K::new(self.k).unwrap_or(K::DEFAULT));
        let mut unread = 0;
        for file in &self.files {
            match read(file) {
                Ok(drawing) => {
                    out!("{}: {}\n{drawing}", file.display(), verdict(&digits, &drawing, k));
                }
                Err(error) => {
                    note!("{}: {error:#}", file.display());
                    unread += 1;
                }
            }
        }
        anyhow::ensure!(unread == 0, "{unread} of {} files could not be read", self.files.len());
        Ok(())
    }
}

fn neighbors(text: &str) -> Result<usize, String> {
    let known = text.parse().ok().and_then(K::new).map(K::count);
    known.ok_or_else(|| format!("a number from 1 to {}", K::MAX.count()))
}

fn read(file: &Path) -> anyhow::Result<Bits> {
    let bytes = fs::read(file)?;
    let image = match drawing::open(&bytes) {
        Err(ImageError::Format) => {
            let text = str::from_utf8(&bytes).map_err(|_| anyhow!("neither an image nor text"))?;
            return Ok(text.parse()?);
        }
        image => image?,
    };
    Ok(image.normalize()?)
}

fn verdict(samples: &Samples, drawing: &Bits, k: K) -> String {
    let mut nearest = Vec::new();
    samples.nearest(drawing, k, &mut nearest);
    let votes = samples.vote(&nearest);
    let Some(winner) = votes.first() else { unreachable!("there are built-in digits") };
    let confidence = f64::from(winner.votes) / nearest.len() as f64;
    let label = samples.name(winner.label);
    format!("{label}, confidence {confidence:.2} ({} of {})", winner.votes, nearest.len())
}

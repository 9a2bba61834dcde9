//! Prints how many of the MNIST test images are recognized with the built-in digits: `cargo run --profile dist -p knn
//! --example accuracy -- FOLDER`. FOLDER contains the test images and labels as IDX files.
#![allow(clippy::indexing_slicing, reason = "a wrong index ends the program, which is fine")]

mod mnist;

use std::env;
use std::error::Error;
use std::path::Path;

use knn::K;
use mnist::Mnist;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("which folder has the IDX files?")?;
    let images = Mnist::read(Path::new(&folder), "t10k")?;
    let samples = knn::digits();
    let mut table = [[0_u32; 10]; 10];
    let mut found = Vec::new();
    for (drawing, digit) in images.drawings.iter().zip(&images.digits) {
        samples.nearest(drawing, K::DEFAULT, &mut found);
        let said: usize = samples.name(samples.vote(&found)[0].label).parse()?;
        table[usize::from(*digit)][said] += 1;
    }
    let right: u32 = (0..10).map(|digit| table[digit][digit]).sum();
    let share = f64::from(right) * 100.0 / images.digits.len() as f64;
    println!("{right} of {} right: {share:.2} %\n", images.digits.len());
    println!("drawn   recognized as: 0     1     2     3     4     5     6     7     8     9");
    for (digit, row) in table.iter().enumerate() {
        let counts: String = row.iter().map(|count| format!("{count:6}")).collect();
        println!("{digit}              {counts}");
    }
    Ok(())
}

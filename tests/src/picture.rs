//! Pictures that can be compared: their small differences are those of the machine, their large ones those of the page.

use std::io::Cursor;

/// As many pixels of a picture become one, in width and in height.
const SHRINK: usize = 4;
/// By this much of 255 a colour may differ unnoticed.
const UNNOTICED: u8 = 40;

/// A picture with four bytes a pixel: red, green, blue, opacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

impl Picture {
    /// Reads a PNG.
    pub fn from_png(bytes: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::ALPHA | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut buffer).unwrap();
        assert_eq!(frame.color_type, png::ColorType::Rgba);
        let (pixels, _) = buffer.as_chunks::<4>();
        Self {
            width: usize::try_from(frame.width).unwrap(),
            height: usize::try_from(frame.height).unwrap(),
            pixels: pixels.to_vec(),
        }
    }

    /// Writes a PNG.
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = (
            u32::try_from(self.width).unwrap(),
            u32::try_from(self.height).unwrap(),
        );
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(self.pixels.as_flattened()).unwrap();
        writer.finish().unwrap();
        bytes
    }

    /// The picture in a quarter of its width and height, in which the edges of letters count for little.
    pub fn quarter(&self) -> Self {
        let (width, height) = (self.width / SHRINK, self.height / SHRINK);
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self {
            width,
            height,
            pixels: places.map(|(x, y)| self.mean(x * SHRINK, y * SHRINK)).collect(),
        }
    }

    /// The mean colour of a square.
    fn mean(&self, left: usize, top: usize) -> [u8; 4] {
        let mut sums = [0_usize; 4];
        for y in top..top + SHRINK {
            for x in left..left + SHRINK {
                for (sum, part) in sums.iter_mut().zip(self.pixels[y * self.width + x]) {
                    *sum += usize::from(part);
                }
            }
        }
        sums.map(|sum| u8::try_from(sum / (SHRINK * SHRINK)).unwrap())
    }

    /// Its uppermost rows.
    pub fn top(mut self, rows: usize) -> Self {
        self.height = self.height.min(rows);
        self.pixels.truncate(self.width * self.height);
        self
    }

    /// The differing pixels in a thousand. A place that only one of the pictures has differs.
    pub fn difference(&self, other: &Self) -> usize {
        let (width, height) = (self.width.max(other.width), self.height.max(other.height));
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let differing = places
            .filter(|&(x, y)| match (self.at(x, y), other.at(x, y)) {
                (Some(one), Some(other)) => one.iter().zip(other).any(|(a, b)| a.abs_diff(b) > UNNOTICED),
                _ => true,
            })
            .count();
        (differing * 1000).div_ceil(width * height)
    }

    fn at(&self, x: usize, y: usize) -> Option<[u8; 4]> {
        let is_inside = x < self.width && y < self.height;
        is_inside.then(|| self.pixels[y * self.width + x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(width: usize, height: usize, colour: [u8; 4]) -> Picture {
        Picture {
            width,
            height,
            pixels: vec![colour; width * height],
        }
    }

    #[test]
    fn a_picture_outlives_its_png() {
        let mut picture = plain(8, 5, [10, 20, 30, 255]);
        picture.pixels[11] = [200, 100, 0, 255];
        assert_eq!(Picture::from_png(&picture.to_png()), picture);
    }

    #[test]
    fn a_quarter_has_the_mean_colours() {
        let mut picture = plain(8, 4, [0, 0, 0, 255]);
        for pixel in picture.pixels.iter_mut().step_by(2) {
            *pixel = [100, 0, 0, 255];
        }
        assert_eq!(picture.quarter(), plain(2, 1, [50, 0, 0, 255]));
    }

    #[test]
    fn small_differences_of_colour_do_not_count_and_places_of_one_picture_alone_do() {
        let grey = plain(10, 10, [100, 100, 100, 255]);
        assert_eq!(grey.difference(&plain(10, 10, [120, 100, 90, 255])), 0);
        assert_eq!(grey.difference(&plain(10, 10, [200, 100, 100, 255])), 1000);
        assert_eq!(grey.difference(&plain(10, 20, [100, 100, 100, 255])), 500);
    }
}

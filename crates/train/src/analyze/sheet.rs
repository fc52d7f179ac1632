//! A picture as a list of marks: rectangles, lines, texts and maps in, the same picture as PNG and SVG out.
//!
//! Lengths are in points, from the upper left corner; a point is [`SCALE`] pixels. Maps of many cells lie below all
//! other marks and are one image each, so that an SVG stays small. Letters come from a font inside the program.
//! A PNG is drawn twice as large and made smaller, which makes its lines smooth.

use std::path::Path;
use std::sync::Once;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontTransform, TextStyle, register_font};

use super::ramp;

/// Pixels of a point.
pub const SCALE: f64 = 2.0;
/// How much larger a PNG is drawn than written.
const SMOOTH: usize = 2;

const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");
const FAMILY: &str = "sans-serif";

/// Red, green, blue.
pub type Colour = [u8; 3];

pub(super) const INK: Colour = [31, 35, 40];
pub(super) const FAINT: Colour = [101, 109, 118];
pub(super) const LINE: Colour = [208, 215, 222];
pub(super) const PAPER: Colour = [255, 255, 255];
/// What the reference says.
pub(super) const TRUTH: Colour = [207, 34, 46];
/// What the model says.
pub(super) const ANSWER: Colour = [9, 105, 218];

/// Where a text stands with respect to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A text, and how it is written; its height is centred on its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) letters: String,
    pub(super) size: f64,
    pub(super) colour: Colour,
    pub(super) anchor: Anchor,
    /// Whether it runs upwards.
    pub(super) is_turned: bool,
}

/// A rectangle in points: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Mark {
    Rect(Place, Colour),
    Line(Vec<(f64, f64)>, Colour, f64),
    Dot((f64, f64), f64, Colour),
    Ring((f64, f64), f64, Colour),
    Text(Text),
}

/// Cells of one colour each, row by row from the top.
#[derive(Clone, Debug, PartialEq)]
struct Map {
    place: Place,
    n_columns: usize,
    pixels: Vec<Colour>,
}

/// A picture under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: f64,
    height: f64,
    maps: Vec<Map>,
    marks: Vec<Mark>,
}

impl Picture {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, maps: Vec::new(), marks: Vec::new() }
    }

    pub(super) fn rect(&mut self, place: Place, colour: Colour) {
        self.marks.push(Mark::Rect(place, colour));
    }

    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, colour: Colour, width: f64) {
        self.marks.push(Mark::Line(points, colour, width));
    }

    pub(super) fn dot(&mut self, centre: (f64, f64), radius: f64, colour: Colour) {
        self.marks.push(Mark::Dot(centre, radius, colour));
    }

    pub(super) fn ring(&mut self, centre: (f64, f64), radius: f64, colour: Colour) {
        self.marks.push(Mark::Ring(centre, radius, colour));
    }

    pub(super) fn frame(&mut self, place: Place, colour: Colour) {
        let Place { x, y, width, height } = place;
        let corners = vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)];
        self.line(corners, colour, 1.0);
    }

    pub(super) fn write(&mut self, text: Text) {
        self.marks.push(Mark::Text(text));
    }

    /// A text that begins, or by `anchor` ends, at a place.
    pub(super) fn text(&mut self, at: (f64, f64), text: impl Into<String>, size: f64, colour: Colour, anchor: Anchor) {
        let (x, y) = at;
        self.write(Text { x, y, letters: text.into(), size, colour, anchor, is_turned: false });
    }

    /// Cells of `values`, `n_columns` a row, whose shade says where a value lies between `range`.
    pub(super) fn map(&mut self, place: Place, values: &[f32], n_columns: usize, range: (f32, f32)) {
        let pixels = values.iter().map(|value| ramp::shade(ramp::share(*value, range))).collect();
        self.maps.push(Map { place, n_columns, pixels });
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (PEN.pixels(self.width) as u32, PEN.pixels(self.height) as u32)
    }

    /// The picture as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let (width, height) = self.size();
        let large = Pen { scale: SMOOTH as f64 * SCALE, drop: 0.07 };
        let (wide, tall) = (width * SMOOTH as u32, height * SMOOTH as u32);
        let mut buffer = vec![255; (wide * tall * 3) as usize];
        self.maps.iter().for_each(|map| map.paint(large, &mut buffer, wide as usize));
        {
            let area = BitMapBackend::with_buffer(&mut buffer, (wide, tall)).into_drawing_area();
            self.draw(large, &area).expect("drawing in memory does not fail");
        }
        encode_png(&smaller(&buffer, wide as usize), width, height)
    }

    /// The picture as an SVG file.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, self.size()).into_drawing_area();
            self.draw(PEN, &area).expect("drawing in memory does not fail");
            area.present().expect("drawing in memory does not fail");
        }
        let body = svg.find('>').map_or(0, |at| at + 1);
        let maps: String = self.maps.iter().map(Map::svg).collect();
        let paper = "\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n";
        format!("{}{paper}{maps}{}", &svg[..body], &svg[body..])
    }

    /// Writes `STEM.png` and `STEM.svg` into `dir`.
    pub fn save(&self, dir: &Path, stem: &str) -> io::Result<()> {
        fs::write(dir.join(format!("{stem}.png")), self.png())?;
        fs::write(dir.join(format!("{stem}.svg")), self.svg())
    }

    fn draw<B: DrawingBackend>(&self, pen: Pen, area: &DrawingArea<B, Shift>) -> Drawn<B> {
        use_font();
        self.marks.iter().try_for_each(|mark| mark.draw(pen, area))
    }
}

impl Mark {
    fn draw<B: DrawingBackend>(&self, pen: Pen, area: &DrawingArea<B, Shift>) -> Drawn<B> {
        let at = |(x, y): (f64, f64)| (pen.pixels(x), pen.pixels(y));
        let long = |length: f64| pen.pixels(length).max(1) as u32;
        match self {
            Self::Rect(Place { x, y, width, height }, colour) => {
                area.draw(&Rectangle::new([at((*x, *y)), at((x + width, y + height))], rgb(*colour).filled()))
            }
            Self::Line(points, colour, width) => {
                let points: Vec<(i32, i32)> = points.iter().copied().map(at).collect();
                area.draw(&PathElement::new(points, rgb(*colour).stroke_width(long(*width))))
            }
            Self::Dot(centre, radius, colour) => {
                area.draw(&Circle::new(at(*centre), long(*radius), rgb(*colour).filled()))
            }
            Self::Ring(centre, radius, colour) => {
                area.draw(&Circle::new(at(*centre), long(*radius), rgb(*colour).stroke_width(long(1.2))))
            }
            Self::Text(text) => {
                let drop = pen.drop * text.size;
                let (x, y) = if text.is_turned { (text.x + drop, text.y) } else { (text.x, text.y + drop) };
                area.draw_text(&text.letters, &pen.style(text), at((x, y)))
            }
        }
    }
}

impl Map {
    fn n_rows(&self) -> usize {
        self.pixels.len() / self.n_columns.max(1)
    }

    /// Every pixel of the place takes the colour of the cell that it lies in.
    fn paint(&self, pen: Pen, buffer: &mut [u8], stride: usize) {
        let Place { x, y, width, height } = self.place;
        let [left, top, n_across, n_down] = [x, y, width, height].map(|length| pen.pixels(length) as usize);
        for down in 0..n_down {
            let row = down * self.n_rows() / n_down;
            for across in 0..n_across {
                let column = across * self.n_columns / n_across;
                let at = 3 * ((top + down) * stride + left + across);
                buffer[at..at + 3].copy_from_slice(&self.pixels[row * self.n_columns + column]);
            }
        }
    }

    fn svg(&self) -> String {
        let png = encode_png(self.pixels.as_flattened(), self.n_columns as u32, self.n_rows() as u32);
        let Place { x, y, width, height } = self.place;
        format!(
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
            PEN.pixels(x),
            PEN.pixels(y),
            PEN.pixels(width),
            PEN.pixels(height),
            STANDARD.encode(png)
        )
    }
}

/// How large points become, and how far the middle of letters lies below the middle of their line, in parts of its
/// height.
#[derive(Clone, Copy)]
struct Pen {
    scale: f64,
    drop: f64,
}

const PEN: Pen = Pen { scale: SCALE, drop: 0.0 };

type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl Pen {
    fn pixels(self, points: f64) -> i32 {
        (points * self.scale).round() as i32
    }

    fn style(self, text: &Text) -> TextStyle<'static> {
        let h_pos = match text.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let turn = if text.is_turned { FontTransform::Rotate270 } else { FontTransform::None };
        let font = (FAMILY, text.size * self.scale).into_font().transform(turn);
        let color = rgb(text.colour).to_backend_color();
        TextStyle { font, color, pos: Pos::new(h_pos, VPos::Center) }
    }
}

/// Each square of [`SMOOTH`] pixels as their mean.
fn smaller(rgb: &[u8], width: usize) -> Vec<u8> {
    let n_across = width / SMOOTH;
    let n_down = rgb.len() / (3 * width * SMOOTH);
    let mut small = Vec::with_capacity(3 * n_across * n_down);
    for at in 0..n_across * n_down * 3 {
        let (pixel, channel) = (at / 3, at % 3);
        let (left, top) = (pixel % n_across * SMOOTH, pixel / n_across * SMOOTH);
        let of = |k: usize| u32::from(rgb[3 * ((top + k / SMOOTH) * width + left + k % SMOOTH) + channel]);
        small.push(((0..SMOOTH * SMOOTH).map(of).sum::<u32>() / (SMOOTH * SMOOTH) as u32) as u8);
    }
    small
}

fn rgb([red, green, blue]: Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

/// How wide a text is, in points.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    use_font();
    let (width, _) = (FAMILY, size * SCALE).into_font().box_size(text).unwrap_or_default();
    f64::from(width) / SCALE
}

/// Makes our letters those of every drawing.
fn use_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        assert!(register_font(FAMILY, FontStyle::Normal, FONT).is_ok(), "the font inside the program is one");
    });
}

/// Pixels of three bytes as a PNG file.
fn encode_png(rgb: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect("a picture has a width and a height");
    writer.write_image_data(rgb).expect("there are as many pixels as the header says");
    writer.finish().expect("writing to memory does not fail");
    file
}

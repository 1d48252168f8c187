//! One of our drawings as a PDF page of its size. The texts are in Helvetica and Symbol, which every reader of PDF has: nothing is embedded,
//! and no font of the system is asked for.

use std::collections::BTreeMap;

use pdf_writer::types::LineCapStyle;
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str};
use roxmltree::{Document, Node};

/// A drawing is not one of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the drawing has {0}, which its PDF would lack")]
pub struct PdfError(String);

/// Widths of the characters from space to ~ in Helvetica, thousandths of its size (Adobe's metrics).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// The letters of Symbol, in the order of `GREEK`.
const GREEK: &str = "αβγδεζηθικλμνξοπρστυφχψω";
const SYMBOL: &[u8; 24] = b"abgdezhqiklmnxoprstujcyw";
/// Characters of Windows' code page that are not where Unicode has them.
const WINDOWS: [(char, u8); 7] =
    [('€', 0x80), ('…', 0x85), ('’', 0x92), ('“', 0x93), ('”', 0x94), ('–', 0x96), ('—', 0x97)];
/// What no font of these has, and what stands for it.
const INSTEAD: [(char, &str); 8] =
    [('→', "->"), ('≤', "<="), ('≥', ">="), ('−', "-"), ('√', "sqrt "), ('₀', "0"), ('₁', "1"), ('₂', "2")];

/// The drawing `svg` as a PDF file.
pub fn pdf(svg: &str) -> Result<Vec<u8>, PdfError> {
    let document = Document::parse(svg).map_err(|e| PdfError(e.to_string()))?;
    let root = document.root_element();
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    let mut page = Page { content: Content::new(), alphas: BTreeMap::new() };
    // SVG counts downwards, PDF upwards.
    page.content.transform([1.0, 0.0, 0.0, -1.0, 0.0, height]);
    page.content.set_line_cap(LineCapStyle::ButtCap);
    let size = root.attribute("font-size").and_then(|s| s.parse().ok()).unwrap_or(14.0);
    root.children().try_for_each(|node| page.element(&node, size))?;
    Ok(file(page, width, height))
}

fn file(page: Page, width: f32, height: f32) -> Vec<u8> {
    let [catalog, tree, sheet, content, helvetica, bold, symbol] = [1, 2, 3, 4, 5, 6, 7].map(Ref::new);
    let alphas: Vec<(u8, Ref)> =
        page.alphas.keys().zip(8..).map(|(alpha, n)| (*alpha, Ref::new(n))).collect();
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(tree);
    pdf.pages(tree).kids([sheet]).count(1);
    let mut made = pdf.page(sheet);
    made.media_box(Rect::new(0.0, 0.0, width, height)).parent(tree).contents(content);
    let mut resources = made.resources();
    resources.fonts().pair(Name(b"F1"), helvetica).pair(Name(b"F2"), bold).pair(Name(b"F3"), symbol);
    let mut states = resources.ext_g_states();
    for (alpha, id) in &alphas {
        states.pair(Name(named(*alpha).as_bytes()), *id);
    }
    states.finish();
    resources.finish();
    made.finish();
    for (id, name) in [(helvetica, &b"Helvetica"[..]), (bold, b"Helvetica-Bold")] {
        pdf.type1_font(id).base_font(Name(name)).encoding_predefined(Name(b"WinAnsiEncoding"));
    }
    pdf.type1_font(symbol).base_font(Name(b"Symbol"));
    for (alpha, id) in alphas {
        let share = f32::from(alpha) / 100.0;
        pdf.ext_graphics(id).non_stroking_alpha(share).stroking_alpha(share);
    }
    pdf.stream(content, &page.content.finish());
    pdf.finish()
}

/// Name of an opacity, which is given in hundredths.
fn named(alpha: u8) -> String {
    format!("A{alpha}")
}

/// A page that is being drawn, and the opacities that it has, in hundredths.
struct Page {
    content: Content,
    alphas: BTreeMap<u8, ()>,
}

impl Page {
    fn element(&mut self, node: &Node<'_, '_>, size: f32) -> Result<(), PdfError> {
        if !node.is_element() || node.attribute("pointer-events").is_some() {
            return Ok(()); // what only a pointer finds
        }
        let at = |name| number(node, name);
        match node.tag_name().name() {
            "g" => return self.group(node, size),
            "text" => return self.text(node, size),
            _ => {}
        }
        self.begin(node);
        match node.tag_name().name() {
            "rect" if node.attribute("width") == Some("100%") => {}
            "rect" => drop(self.content.rect(at("x"), at("y"), at("width"), at("height"))),
            "line" => drop(self.content.move_to(at("x1"), at("y1")).line_to(at("x2"), at("y2"))),
            "circle" => self.circle(at("cx"), at("cy"), at("r")),
            "polyline" => self.way(&points(node)),
            "polygon" => {
                self.way(&points(node));
                self.content.close_path();
            }
            other => return Err(PdfError(format!("<{other}>"))),
        }
        self.end(node);
        Ok(())
    }

    fn group(&mut self, node: &Node<'_, '_>, size: f32) -> Result<(), PdfError> {
        self.content.save_state();
        let moved = node.attribute("transform").and_then(|t| t.strip_prefix("translate(")?.strip_suffix(')'));
        if let Some((x, y)) = moved.and_then(|t| t.split_once(',')) {
            self.content.transform([1.0, 0.0, 0.0, 1.0, x.parse().unwrap_or(0.0), y.parse().unwrap_or(0.0)]);
        }
        node.children().try_for_each(|child| self.element(&child, size))?;
        self.content.restore_state();
        Ok(())
    }

    /// Colours, width and opacity of what comes.
    fn begin(&mut self, node: &Node<'_, '_>) {
        self.content.save_state();
        let opacity = node.attribute("opacity").and_then(|o| o.parse::<f32>().ok()).unwrap_or(1.0);
        let alpha = (opacity * 100.0).round().clamp(0.0, 100.0) as u8;
        if alpha < 100 {
            self.alphas.insert(alpha, ());
            self.content.set_parameters(Name(named(alpha).as_bytes()));
        }
        if let Some([r, g, b]) = colour(node.attribute("fill")) {
            self.content.set_fill_rgb(r, g, b);
        }
        if let Some([r, g, b]) = colour(node.attribute("stroke")) {
            self.content.set_stroke_rgb(r, g, b);
        }
        self.content
            .set_line_width(node.attribute("stroke-width").and_then(|w| w.parse().ok()).unwrap_or(1.0));
    }

    /// Paints what was outlined since [`Self::begin`].
    fn end(&mut self, node: &Node<'_, '_>) {
        let has = |name| colour(node.attribute(name)).is_some();
        match (has("fill"), has("stroke")) {
            (true, true) => self.content.fill_nonzero_and_stroke(),
            (true, false) => self.content.fill_nonzero(),
            (false, true) => self.content.stroke(),
            (false, false) => self.content.end_path(),
        };
        self.content.restore_state();
    }

    fn way(&mut self, points: &[(f32, f32)]) {
        for (n, (x, y)) in points.iter().enumerate() {
            if n == 0 {
                self.content.move_to(*x, *y)
            } else {
                self.content.line_to(*x, *y)
            };
        }
    }

    /// Four curves (0.5523 r is how far their middle points stand from their ends).
    fn circle(&mut self, x: f32, y: f32, r: f32) {
        let k = 0.5523 * r;
        self.content.move_to(x + r, y);
        self.content.cubic_to(x + r, y + k, x + k, y + r, x, y + r);
        self.content.cubic_to(x - k, y + r, x - r, y + k, x - r, y);
        self.content.cubic_to(x - r, y - k, x - k, y - r, x, y - r);
        self.content.cubic_to(x + k, y - r, x + r, y - k, x + r, y);
    }

    fn text(&mut self, node: &Node<'_, '_>, size: f32) -> Result<(), PdfError> {
        let runs = runs(node.text().unwrap_or_default().trim());
        let size = node.attribute("font-size").and_then(|s| s.parse().ok()).unwrap_or(size);
        let wide: f32 = runs.iter().map(Run::width).sum::<f32>() * size / 1000.0;
        let left = match node.attribute("text-anchor") {
            Some("middle") => -wide / 2.0,
            Some("end") => -wide,
            _ => 0.0,
        };
        let down =
            node.attribute("dy").and_then(|d| d.strip_suffix("em")?.parse::<f32>().ok()).unwrap_or(0.0)
                * size;
        let turned = node
            .attribute("transform")
            .is_some_and(|t| t.starts_with("rotate(270") || t.starts_with("rotate(-90"));
        if node.attribute("transform").is_some() && !turned {
            return Err(PdfError("a turned text".to_owned()));
        }
        let (x, y) = (number(node, "x"), number(node, "y"));
        let bold = node.attribute("font-weight") == Some("bold");
        self.begin(node);
        self.content.begin_text();
        // The glyphs stand upright, as this page is turned over.
        match turned {
            true => self.content.set_text_matrix([0.0, -1.0, -1.0, 0.0, x + down, y - left]),
            false => self.content.set_text_matrix([1.0, 0.0, 0.0, -1.0, x + left, y + down]),
        };
        for run in &runs {
            let font: &[u8] = match (run.symbol, bold) {
                (true, _) => b"F3",
                (false, true) => b"F2",
                (false, false) => b"F1",
            };
            self.content.set_font(Name(font), size).show(Str(&run.bytes));
        }
        self.content.end_text();
        self.content.restore_state();
        Ok(())
    }
}

/// Letters of one font.
struct Run {
    symbol: bool,
    bytes: Vec<u8>,
}

impl Run {
    /// In thousandths of its size.
    fn width(&self) -> f32 {
        let of = |b: &u8| match (self.symbol, b) {
            (false, b' '..=b'~') => WIDTHS[usize::from(b - b' ')],
            _ => 556,
        };
        self.bytes.iter().map(|b| f32::from(of(b))).sum()
    }
}

/// `text` in the letters that there are; `?` for others.
fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for c in text.chars() {
        let symbol = GREEK.chars().position(|g| g == c).map(|n| SYMBOL[n]);
        let instead = INSTEAD.iter().find(|(from, _)| *from == c).map(|(_, to)| to.as_bytes().to_vec());
        let bytes = symbol.map(|b| vec![b]).or(instead).unwrap_or_else(|| vec![windows(c)]);
        match runs.last_mut().filter(|run| run.symbol == symbol.is_some()) {
            Some(run) => run.bytes.extend(bytes),
            None => runs.push(Run { symbol: symbol.is_some(), bytes }),
        }
    }
    runs
}

fn windows(c: char) -> u8 {
    let same = u8::try_from(u32::from(c)).ok().filter(|b| matches!(b, 0x20..=0x7e | 0xa0..=0xff));
    same.or_else(|| WINDOWS.iter().find(|(from, _)| *from == c).map(|(_, to)| *to)).unwrap_or(b'?')
}

fn number(node: &Node<'_, '_>, name: &str) -> f32 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn points(node: &Node<'_, '_>) -> Vec<(f32, f32)> {
    let pairs = node.attribute("points").unwrap_or_default().split_whitespace();
    pairs
        .filter_map(|p| p.split_once(','))
        .filter_map(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)))
        .collect()
}

/// `#rrggbb` as shares of red, green and blue; none of `none`.
fn colour(text: Option<&str>) -> Option<[f32; 3]> {
    let value = u32::from_str_radix(text?.strip_prefix('#')?, 16).ok()?;
    Some([16, 8, 0].map(|shift| ((value >> shift) & 0xff) as f32 / 255.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_large_as_its_drawing_and_repeats_byte_for_byte() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"420\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\
                   <g transform=\"translate(0,30)\"><circle cx=\"9\" cy=\"9\" r=\"3\" opacity=\"0.22\" fill=\"#0072b2\"/>\
                   <text x=\"9\" y=\"9\" text-anchor=\"middle\" fill=\"#1d232a\">ω – 1 → 2</text></g></svg>";
        let file = pdf(svg).unwrap();
        let text = String::from_utf8_lossy(&file);
        assert!(text.starts_with("%PDF-") && text.contains("/MediaBox [0 0 680 420]"), "{text}");
        assert!(text.contains("/A22 gs") && text.contains("/F3 14 Tf"), "{text}");
        assert_eq!(file, pdf(svg).unwrap());
    }

    #[test]
    fn what_would_be_lost_is_told() {
        let error = pdf("<svg width=\"1\" height=\"1\"><image/></svg>").unwrap_err();
        assert_eq!(error.to_string(), "the drawing has <image>, which its PDF would lack");
    }

    #[test]
    fn letters_that_no_font_has_are_replaced() {
        let runs = runs("ω₁ ≤ 5 µs – ✓");
        assert_eq!(
            runs.iter().map(|r| (r.symbol, r.bytes.clone())).collect::<Vec<_>>(),
            [(true, b"w".to_vec()), (false, b"1 <= 5 \xb5s \x96 ?".to_vec())]
        );
    }
}

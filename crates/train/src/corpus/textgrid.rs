//! Parses Praat's TextGrid, long and short: the intervals of its tiers.

use super::Timed;

/// A tier of intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Its intervals with something in them.
    pub intervals: Vec<Timed>,
}

/// Why a text is no TextGrid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a TextGrid: {found} where {expected} was expected (value {position})")]
#[allow(missing_docs)] // the messages say what the fields are
pub struct ParseTextGridError {
    pub found: String,
    pub expected: &'static str,
    pub position: usize,
}

/// Every tier of intervals; tiers of points are passed over.
pub fn parse(text: &str) -> Result<Vec<Tier>, ParseTextGridError> {
    let mut values = Values { values: values(text), next: 0 };
    values.expect_text("ooTextFile")?;
    values.expect_text("TextGrid")?;
    values.number()?;
    values.number()?;
    let n_tiers = values.number()?;
    let mut tiers = Vec::new();
    // The count comes from the file; the values themselves end the loop when it lies.
    for _ in 0..count(n_tiers) {
        tiers.extend(parse_tier(&mut values)?);
    }
    Ok(tiers)
}

/// The tier with one of these names, in any case.
pub(crate) fn tier<'a>(tiers: &'a [Tier], names: &[&str]) -> Option<&'a Tier> {
    tiers.iter().find(|tier| names.contains(&tier.name.to_lowercase().as_str()))
}

fn count(number: f64) -> u64 {
    if number.is_finite() && 0.0 <= number { number as u64 } else { 0 }
}

fn parse_tier(values: &mut Values) -> Result<Option<Tier>, ParseTextGridError> {
    let class = values.text("a tier")?;
    let name = values.text("the name of a tier")?;
    values.number()?;
    values.number()?;
    let n = count(values.number()?);
    let mut intervals = Vec::new();
    for _ in 0..n {
        let start_s = values.number()?;
        let end_s = if class == "IntervalTier" { values.number()? } else { start_s };
        let name = values.text("the text of an interval")?.trim().to_owned();
        if !name.is_empty() {
            intervals.push(Timed { start_s, end_s, name });
        }
    }
    Ok((class == "IntervalTier").then_some(Tier { name, intervals }))
}

#[derive(Debug, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

struct Values {
    values: Vec<Value>,
    next: usize,
}

impl Values {
    fn take(&mut self) -> Option<&Value> {
        self.next += 1;
        self.values.get(self.next - 1)
    }

    fn number(&mut self) -> Result<f64, ParseTextGridError> {
        match self.take() {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(self.unexpected("a number")),
        }
    }

    fn text(&mut self, expected: &'static str) -> Result<String, ParseTextGridError> {
        match self.take() {
            Some(Value::Text(text)) => Ok(text.clone()),
            _ => Err(self.unexpected(expected)),
        }
    }

    fn expect_text(&mut self, wanted: &'static str) -> Result<(), ParseTextGridError> {
        match self.take() {
            Some(Value::Text(text)) if text == wanted => Ok(()),
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn unexpected(&self, expected: &'static str) -> ParseTextGridError {
        let found = match self.values.get(self.next - 1) {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Text(text)) => format!("{:?}", text.chars().take(40).collect::<String>()),
            None => "the end".to_owned(),
        };
        ParseTextGridError { found, expected, position: self.next }
    }
}

/// The numbers and quoted texts of a file. In the long form names stand around them (`xmin = 0`, `intervals [1]:`),
/// which say nothing that the order does not; indices in brackets are not values.
fn values(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let (quoted, after) = quoted(&rest[1..]);
            values.push(Value::Text(quoted));
            rest = after;
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len()).max(first.len_utf8());
        values.extend(rest[..end].parse().ok().map(Value::Number));
        rest = &rest[end..];
    }
    values
}

/// A text up to its closing quote, doubled quotes inside being one, and what follows it.
fn quoted(text: &str) -> (String, &str) {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('"') {
        found.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                found.push('"');
                rest = after;
            }
            None => return (found, after),
        }
    }
    (found + rest, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = r#"File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2.3
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 2.3
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = "say ""3"""
        intervals [2]:
            xmin = 1.5
            xmax = 2.3
            text = ""
    item [2]:
        class = "TextTier"
        name = "bell"
        xmin = 0
        xmax = 2.3
        points: size = 1
        points [1]:
            number = 1
            mark = "x"
"#;

    #[test]
    fn long_and_short_forms_are_the_same() {
        let short = "File type = \"ooTextFile\"\n\"TextGrid\"\n\n0\n2.3\n<exists>\n2\n\"IntervalTier\"\n\"words\"\n0\n2.3\n2\n0\n1.5\n\"say \"\"3\"\"\"\n1.5\n2.3\n\"\"\n\"TextTier\"\n\"bell\"\n0\n2.3\n1\n1\n\"x\"\n";
        let expected = Tier {
            name: "words".to_owned(),
            intervals: vec![Timed { start_s: 0.0, end_s: 1.5, name: "say \"3\"".to_owned() }],
        };
        assert_eq!(parse(LONG).unwrap(), std::slice::from_ref(&expected));
        assert_eq!(parse(short).unwrap(), [expected]);
    }

    #[test]
    fn a_cut_file_says_what_is_missing() {
        let error = parse(&LONG[..LONG.len() / 2]).unwrap_err();
        assert!(error.to_string().starts_with("not a TextGrid: "), "{error}");
        assert_eq!(
            parse("").unwrap_err().to_string(),
            "not a TextGrid: the end where ooTextFile was expected (value 1)"
        );
    }

    #[test]
    fn a_count_that_lies_ends_with_the_values() {
        assert!(parse("\"ooTextFile\" \"TextGrid\" 0 1 1e18").is_err());
    }
}

//! Quantities in one way of writing: exact decimal numbers without exponent or needless zeros (REV-3 step 6).

use serde_json::Value;

/// Larger exponents stay as they are written; the API server takes none of them.
const LARGEST_EXPONENT: i32 = 60;

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Factor {
    /// 10 to this power.
    Decimal(i32),
    /// 1024 to this power.
    Binary(u32),
}

/// The number that a quantity stands for; `None` if it is no quantity.
pub(super) fn canonical(quantity: &Value) -> Option<String> {
    match quantity {
        Value::Number(number) => of_text(&number.to_string()),
        Value::String(text) => of_text(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn of_text(text: &str) -> Option<String> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| digit.wrapping_sub(b'0'))
        .collect();
    let shift = i32::try_from(fraction.len()).ok()?;
    let plain = match factor(suffix)? {
        Factor::Decimal(power) => decimal(&digits, power - shift),
        Factor::Binary(power) => decimal(
            &(0..power).fold(digits, |digits, _| times_1024(&digits)),
            -shift,
        ),
    };
    Some(if is_negative && plain != "0" {
        format!("-{plain}")
    } else {
        plain
    })
}

fn factor(suffix: &str) -> Option<Factor> {
    Some(match suffix {
        "" => Factor::Decimal(0),
        "n" => Factor::Decimal(-9),
        "u" => Factor::Decimal(-6),
        "m" => Factor::Decimal(-3),
        "k" => Factor::Decimal(3),
        "M" => Factor::Decimal(6),
        "G" => Factor::Decimal(9),
        "T" => Factor::Decimal(12),
        "P" => Factor::Decimal(15),
        "E" => Factor::Decimal(18),
        "Ki" => Factor::Binary(1),
        "Mi" => Factor::Binary(2),
        "Gi" => Factor::Binary(3),
        "Ti" => Factor::Binary(4),
        "Pi" => Factor::Binary(5),
        "Ei" => Factor::Binary(6),
        exponent => {
            let power = exponent.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            Factor::Decimal(
                Some(power)
                    .filter(|power| power.unsigned_abs() <= LARGEST_EXPONENT.unsigned_abs())?,
            )
        }
    })
}

fn times_1024(digits: &[u8]) -> Vec<u8> {
    let mut carry: u32 = 0;
    let mut product: Vec<u8> = digits
        .iter()
        .rev()
        .map(|digit| {
            let value = u32::from(*digit) * 1024 + carry;
            carry = value / 10;
            last_digit(value)
        })
        .collect();
    while carry > 0 {
        product.push(last_digit(carry));
        carry /= 10;
    }
    product.reverse();
    product
}

fn last_digit(value: u32) -> u8 {
    u8::try_from(value % 10).unwrap_or_default()
}

/// `digits` times 10 to the power `power`, in plain writing.
fn decimal(digits: &[u8], power: i32) -> String {
    let mut text: String = digits
        .iter()
        .map(|digit| char::from(b'0' + digit))
        .collect();
    let places = usize::try_from(power.unsigned_abs()).unwrap_or_default();
    if power >= 0 {
        text.extend(std::iter::repeat_n('0', places));
    } else {
        if text.len() <= places {
            text.insert_str(0, &"0".repeat(places + 1 - text.len()));
        }
        text.insert(text.len() - places, '.');
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    let trimmed = text.trim_start_matches('0');
    if trimmed.is_empty() || trimmed.starts_with('.') {
        format!("0{trimmed}")
    } else {
        trimmed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dsr_rev_3_quantities_are_exact_decimal_numbers() {
        for (text, number) in [
            ("1000m", "1"),
            ("50m", "0.05"),
            ("64Mi", "67108864"),
            ("1", "1"),
            ("007", "7"),
            (".5", "0.5"),
            ("1.", "1"),
            ("1.50", "1.5"),
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("+2", "2"),
            ("-100m", "-0.1"),
            ("1e3", "1000"),
            ("1E-3", "0.001"),
            ("1E", "1000000000000000000"),
            ("0.5Ki", "512"),
            ("1.5Gi", "1610612736"),
            ("3n", "0.000000003"),
            ("16Ei", "18446744073709551616"),
        ] {
            assert_eq!(canonical(&json!(text)).as_deref(), Some(number), "{text}");
        }
        assert_eq!(canonical(&json!(4)).as_deref(), Some("4"));
    }

    #[test]
    fn dsr_rev_3_what_is_no_quantity_stays() {
        for value in [
            json!(""),
            json!("x"),
            json!("1.2.3"),
            json!("1Xi"),
            json!("1e99999"),
            json!(null),
            json!([]),
        ] {
            assert_eq!(canonical(&value), None, "{value}");
        }
    }
}

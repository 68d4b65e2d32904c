//! What a pattern cannot tell: check digits, lengths by country, chance and placeholders.

/// The check digit of card numbers, over the digits of a text.
pub(super) fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(n, digit)| {
            if n % 2 == 0 {
                digit
            } else if digit > 4 {
                digit * 2 - 9
            } else {
                digit * 2
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Does an issuer give cards that begin so, with so many digits?
pub(super) fn has_issuer(digits: &str) -> bool {
    let head = |n: usize| digits.get(..n).and_then(|head| head.parse::<u32>().ok()).unwrap_or(0);
    match digits.len() {
        15 => matches!(head(2), 34 | 37),
        14 => matches!(head(3), 300..=305) || matches!(head(2), 36 | 38 | 39),
        13 => head(1) == 4,
        16..=19 => {
            head(1) == 4
                || (matches!(head(2), 51..=55) || matches!(head(4), 2221..=2720)) && digits.len() == 16
                || matches!(head(4), 6011 | 3528..=3589 | 6304 | 6759 | 6761..=6763)
                || matches!(head(3), 644..=649)
                || matches!(head(2), 65 | 62 | 50 | 60)
        }
        _ => false,
    }
}

/// How long an account number of this country is; none: no such country.
pub(super) fn iban_length(country: &str) -> Option<usize> {
    const LENGTHS: &[(usize, &str)] = &[
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FO GL NL SD"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU XK MN"),
        (21, "CH CR HR LI LV"),
        (22, "BG BH DE GB GE IE ME RS"),
        (23, "AE GI IL IQ OM SO TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG DZ"),
        (25, "LY PT ST"),
        (26, "IS TR IR"),
        (27, "BI DJ FR GR IT MC MR SM CM CF CG GA GQ TD KM"),
        (28, "AL AZ BY CY DO GT HU LB NI PL SV BF BJ CI MA ML NE SN TG HN"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU"),
        (31, "MT SC"),
        (32, "LC"),
        (33, "RU"),
    ];
    LENGTHS
        .iter()
        .find(|(_, countries)| countries.split(' ').any(|known| known == country))
        .map(|(length, _)| *length)
}

/// The check number of account numbers: modulo 97 of the text with its first four signs at the end.
pub(super) fn iban_checks(compact: &str) -> bool {
    let Some((head, tail)) = compact.split_at_checked(4) else { return false };
    let rest = tail.chars().chain(head.chars()).filter_map(|c| c.to_digit(36)).fold(0_u32, |rest, value| {
        let scale = if value > 9 { 100 } else { 10 };
        (rest * scale + value) % 97
    });
    rest == 1
}

/// Bits of chance in each sign.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = text.len().max(1) as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / length)
        .map(|share| -share * share.log2())
        .sum()
}

/// Is this what people write where a secret would stand?
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'', '`', ',', ';', '.']);
    let lower = text.to_ascii_lowercase();
    let words = [
        "your",
        "changeme",
        "change_me",
        "change-me",
        "placeholder",
        "redacted",
        "dummy",
        "sample",
        "insert",
        "replace",
        "xxxx",
        "todo",
        "fixme",
        "secret_here",
        "token_here",
        "key_here",
        "-here",
        "_here",
        "<",
        ">",
        "${",
        "{{",
        "$(",
        "****",
        "....",
        "...",
        "process.env",
        "os.environ",
        "getenv",
        "config.",
        "settings.",
        "vault",
        "%(",
        "env(",
        "none",
        "null",
        "undefined",
        "function",
        "self.",
        "this.",
        "args.",
        "request.",
        "params",
    ];
    words.iter().any(|word| lower.contains(word))
        || text.starts_with('$')
        || text.starts_with('%')
        || text.chars().all(|c| c == '*' || c == 'x' || c == 'X' || c == '.' || c == '•')
        || matches!(
            lower.as_str(),
            "password"
                | "passwd"
                | "pass"
                | "secret"
                | "token"
                | "pwd"
                | "postgres"
                | "root"
                | "admin"
                | "test"
                | "user"
                | "example"
                | "guest"
                | "mysql"
                | "default"
                | "mypassword"
                | "hunter2"
                | "12345678"
        )
}

/// 8-4-4-4-12.
pub(super) fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

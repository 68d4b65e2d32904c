//! The table of what is found. A rule is a line: anchor, pattern, lengths, and a check where the pattern cannot tell.

use super::check;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;

/// The two kinds of finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A credential.
    Secret,
    /// Personal data.
    Pii,
}

/// One kind of find.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) class: &'static str,
    pub(super) kind: Kind,
    /// Stands in every match; cheap to look for.
    pub(super) anchor: &'static str,
    /// The match, as long as it goes.
    pub(super) pattern: &'static str,
    /// How far from its beginning a match may still be unfinished.
    pub(super) reach: usize,
    lengths: (usize, usize),
    check: fn(&Candidate<'_>) -> Option<usize>,
}

/// A match with what stands around it.
struct Candidate<'a> {
    text: &'a str,
    before: &'a str,
    after: Option<char>,
}

impl Rule {
    /// Judges a match; tells how much of it counts.
    pub(super) fn judge(&self, kept: &str, range: Range<usize>) -> Option<usize> {
        let text = kept.get(range.clone())?;
        let before = kept.get(..range.start)?;
        let after = kept.get(range.end..)?.chars().next();
        let (least, most) = self.lengths;
        let candidate = Candidate { text, before, after };
        (least..=most).contains(&text.len()).then(|| (self.check)(&candidate)).flatten()
    }
}

impl Candidate<'_> {
    fn last(&self) -> Option<char> {
        self.before.chars().next_back()
    }

    /// Stands alone: no letter or digit touches it on the left.
    fn alone(&self) -> bool {
        !self.last().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// The end of the text before, in lower case.
    fn context(&self) -> String {
        let from = self.before.char_indices().rev().nth(31).map_or(0, |(at, _)| at);
        self.before.get(from..).unwrap_or_default().to_ascii_lowercase()
    }

    fn digits(&self) -> String {
        self.text.chars().filter(char::is_ascii_digit).collect()
    }
}

const ANY: usize = 1 << 13;

/// A rule for a format with its own prefix.
const fn token(
    class: &'static str,
    anchor: &'static str,
    pattern: &'static str,
    lengths: (usize, usize),
) -> Rule {
    Rule { class, kind: Kind::Secret, anchor, pattern, reach: 320, lengths, check: alone }
}

const fn secret(
    class: &'static str,
    anchor: &'static str,
    pattern: &'static str,
    check: fn(&Candidate<'_>) -> Option<usize>,
) -> Rule {
    Rule { class, kind: Kind::Secret, anchor, pattern, reach: 320, lengths: (1, ANY), check }
}

const fn pii(
    class: &'static str,
    anchor: &'static str,
    pattern: &'static str,
    check: fn(&Candidate<'_>) -> Option<usize>,
) -> Rule {
    Rule { class, kind: Kind::Pii, anchor, pattern, reach: 80, lengths: (1, 320), check }
}

/// All rules.
pub(super) static RULES: &[Rule] = &[
    token("aws_access_key_id", "A(?:KIA|SIA|BIA|CCA)", "A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}", (20, 20)),
    secret(
        "aws_secret_access_key",
        "[sS][eE][cC][rR][eE][tT]",
        "(?i)secret_?(?:access_?)?key[\"']?\\s*(?::=|=>|[:=])\\s*[\"']?[A-Za-z0-9/+]{40,}",
        aws_secret,
    ),
    token("github_token", "gh[pousr]_", "gh[pousr]_[A-Za-z0-9]{36,}", (40, 255)),
    token("github_token", "github_pat_", "github_pat_[A-Za-z0-9_]{60,}", (71, 255)),
    token(
        "gitlab_token",
        "gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-",
        "gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_.-]{20,}",
        (24, 300),
    ),
    secret("slack_token", "xox[a-z]-|xapp-", "(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{16,}", slack),
    token(
        "slack_webhook",
        "hooks\\.slack\\.com/",
        "hooks\\.slack\\.com/(?:services|workflows)/[A-Za-z0-9]{6,}/[A-Za-z0-9]{6,}/[A-Za-z0-9]{12,}",
        (40, 160),
    ),
    token("anthropic_key", "sk-ant-", "sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}", (50, 255)),
    secret("openai_key", "sk-", "sk-[A-Za-z0-9_-]{20,}", openai),
    token("google_api_key", "AIza", "AIza[A-Za-z0-9_-]{35,}", (39, 40)),
    token(
        "google_oauth",
        "ya29\\.|GOCSPX-",
        "(?:ya29\\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
        (27, 400),
    ),
    token("huggingface_token", "hf_|api_org_", "(?:hf_|api_org_)[A-Za-z0-9]{30,}", (33, 60)),
    token(
        "llm_key",
        "gsk_|xai-|pplx-|r8_|fw_|nvapi-",
        "(?:gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|pplx-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{50,})",
        (33, 200),
    ),
    token(
        "stripe_key",
        "[srp]k_(?:live|test)_|whsec_",
        "(?:[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})",
        (24, 255),
    ),
    token("square_token", "sq0[a-z]{3}-", "sq0[a-z]{3}-[A-Za-z0-9_-]{22,}", (29, 60)),
    token("twilio_key", "SK[0-9a-f]", "SK[0-9a-f]{32,}", (34, 34)),
    token("sendgrid_key", "SG\\.", "SG\\.[A-Za-z0-9_-]{20,24}\\.[A-Za-z0-9_-]{39,50}", (62, 80)),
    token("mailgun_key", "key-[0-9a-f]", "key-[0-9a-f]{32,}", (36, 36)),
    token("mailchimp_key", "-us[0-9]", "[0-9a-f]{32}-us[0-9]{1,2}", (36, 37)),
    token("npm_token", "npm_", "npm_[A-Za-z0-9]{36,}", (40, 40)),
    token("pypi_token", "pypi-", "pypi-[A-Za-z0-9_-]{50,}", (55, 400)),
    token(
        "registry_token",
        "rubygems_|dckr_|oy2|cio[A-Za-z0-9]",
        "(?:rubygems_[0-9a-f]{48}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}|oy2[a-z0-9]{43}|cio[A-Za-z0-9]{32})",
        (29, 100),
    ),
    token("digitalocean_token", "do[opr]_v1_", "do[opr]_v1_[0-9a-f]{64,}", (71, 71)),
    token("vault_token", "hv[sbr]\\.", "hv[sbr]\\.[A-Za-z0-9_-]{20,}", (24, 300)),
    token("terraform_token", "\\.atlasv1\\.", "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{50,}", (70, 120)),
    token("databricks_token", "dapi[0-9a-f]", "dapi[0-9a-f]{32,}(?:-[0-9])?", (36, 38)),
    token(
        "platform_token",
        "(?:pscale|sbp|shp|lin_api|ntn|figd|glsa|glc|sntry|sntrys|secret|dop|HRKU|FlyV1|tskey|tfp)[_ -]|shp(?:at|ca|pa|ss)_|PMAK-|NRAK-|dp\\.|sbp_",
        "(?:pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}|sbp_[0-9a-f]{40}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|lin_api_[A-Za-z0-9]{32,}|(?:secret|ntn)_[A-Za-z0-9]{40,}|figd_[A-Za-z0-9_-]{36,}|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,}|sntry[su]_[A-Za-z0-9+/=_-]{40,}|HRKU-[A-Za-z0-9_-]{30,}|tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|NRAK-[A-Z0-9]{27}|dp\\.(?:pt|st|ct|sa)\\.[A-Za-z0-9.]{40,})",
        (30, 300),
    ),
    token(
        "atlassian_token",
        "ATATT3|ATBB|ATCTT3",
        "(?:ATATT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{24,}|ATCTT3[A-Za-z0-9_=-]{60,})",
        (28, 400),
    ),
    token("airtable_token", "pat[A-Za-z0-9]", "pat[A-Za-z0-9]{14}\\.[0-9a-f]{64}", (82, 82)),
    token("telegram_token", ":AA", "[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}", (43, 48)),
    token(
        "discord_token",
        "\\.[A-Za-z0-9_-]{6}\\.",
        "[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,}",
        (58, 90),
    ),
    token("discord_webhook", "api/webhooks/", "api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{50,}", (70, 140)),
    token("age_key", "AGE-SECRET-KEY-", "AGE-SECRET-KEY-1[0-9A-Z]{50,}", (60, 80)),
    token("alibaba_key", "LTAI", "LTAI[A-Za-z0-9]{16,}", (20, 30)),
    secret(
        "azure_storage_key",
        "AccountKey=|SharedAccessKey=",
        "(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}",
        value,
    ),
    secret("azure_client_secret", "[78]Q~", "[A-Za-z0-9~._-]{3}[78]Q~[A-Za-z0-9~._-]{31,34}", whole),
    secret("azure_sas", "[?&]sig=", "[?&]sig=[A-Za-z0-9%+/]{40,}(?:%3D|=){0,2}", whole),
    Rule {
        class: "jwt",
        kind: Kind::Secret,
        anchor: "eyJ",
        pattern: "eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}(?:\\.[A-Za-z0-9_-]+)*",
        reach: 4096,
        lengths: (30, ANY),
        check: jwt,
    },
    Rule {
        class: "private_key",
        kind: Kind::Secret,
        anchor: "PRIVATE KEY",
        pattern: "-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\\s:,.()-]{24,}?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$|[^A-Za-z0-9+/=\\s:,.()-])",
        reach: 7000,
        lengths: (60, ANY),
        check: pem,
    },
    Rule {
        class: "private_key",
        kind: Kind::Secret,
        anchor: "PuTTY-User-Key-File",
        pattern: "PuTTY-User-Key-File-[23]:[\\s\\S]{20,}?Private-Lines: [0-9]+\\s+[A-Za-z0-9+/=\\s]{40,}",
        reach: 4096,
        lengths: (80, ANY),
        check: whole,
    },
    secret(
        "url_credential",
        "://",
        "[A-Za-z][A-Za-z0-9+.-]*://[^\\s/:@\"'<>`|]*:[^\\s/@\"'<>`|]{3,}@[^\\s\"'<>`|,)]+",
        url,
    ),
    secret(
        "bearer_token",
        "(?:Bearer|bearer|BEARER)\\s",
        "(?:Bearer|bearer|BEARER)\\s+[A-Za-z0-9._~+/=-]{20,}",
        bearer,
    ),
    secret("basic_credential", "(?:Basic|basic)\\s", "(?:Basic|basic)\\s+[A-Za-z0-9+/]{8,}={0,2}", basic),
    secret("registry_auth", "auth\"", "\"auth\"\\s*:\\s*\"[A-Za-z0-9+/]{8,}={0,2}", registry_auth),
    secret(
        "connection_string",
        "[pP](?:assword|wd|ASSWORD|WD)=",
        "(?i)(?:server|data source|host|user id|uid)=[^;\n\"]{1,80};(?:[^;\n\"=]{1,40}=[^;\n\"]{0,80};){0,8}\\s*(?:password|pwd)=[^;\n\"\\s]{3,}",
        given_password,
    ),
    secret(
        "user_password",
        "(?:-u|--user)\\s",
        "(?:curl|wget|http|xh)\\s[^\n]{0,60}?(?:-u|--user)\\s+[\"']?[^\\s:\"']{1,40}:[^\\s\"']{4,}",
        given_password,
    ),
    secret("netrc_password", "password\\s", "login\\s+\\S{1,60}\\s+password\\s+\\S{4,}", given_password),
    secret(
        "generic_secret",
        "(?:[kK][eE][yY]|[tT][oO][kK][eE][nN]|[sS][eE][cC][rR][eE][tT]|[pP][aA][sS][sS]|[pP][wW][dD]|[cC][rR][eE][dD])",
        "(?i)(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?key|encryption[_-]?key|signing[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?)[\"']?\\s*(?::=|=>|[:=])\\s*[\"']?[^\\s\"'`,;(){}\\[\\]<>&|]{8,}",
        generic,
    ),
    pii("card_number", "[0-9]", "[0-9](?:[ -]?[0-9]){12,}", card),
    pii("email", "@", "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+", email),
    pii("iban", "[A-Z]{2}[0-9]{2}", "[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,32}", iban),
    pii("phone", "\\+[0-9(]", "\\+(?:[0-9][ .()/-]{0,2}){7,15}", international),
    pii(
        "phone",
        "[0-9]{3}[ .-][0-9]{4}",
        "(?:\\([0-9]{3}\\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}",
        american,
    ),
    pii(
        "phone",
        "(?:[tT][eE][lL]|[pP]hone|[cC]all|[mM]obile|[fF]ax|[cC]ell|[hH]andy|[wW]hats[aA]pp|PHONE|[sS][mM][sS])",
        "(?i)(?:tel|phone|call|mobile|fax|cell|handy|whatsapp|sms)[a-z]*[.:]{0,2}(?:[\"' =:]| at | me at | no\\.? | number )+\\(?[0-9][0-9 ()./-]{6,20}[0-9]",
        spoken,
    ),
    pii("us_ssn", "[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}", "[0-9]{3}[- ][0-9]{2}[- ][0-9]{4,}", ssn),
];

fn whole(candidate: &Candidate<'_>) -> Option<usize> {
    Some(candidate.text.len())
}

/// A whole word that is not one sign again and again.
fn alone(candidate: &Candidate<'_>) -> Option<usize> {
    let body = candidate.text.get(candidate.text.len() / 2..)?;
    let stretched = body.chars().all(|c| matches!(c, 'x' | 'X' | '*' | '.' | '_' | '-'));
    (candidate.alone() && !stretched).then_some(candidate.text.len())
}

fn value(candidate: &Candidate<'_>) -> Option<usize> {
    let body = candidate.text.split_once('=')?.1;
    (!check::is_placeholder(body)).then_some(candidate.text.len())
}

/// Forty signs next to the name.
fn aws_secret(candidate: &Candidate<'_>) -> Option<usize> {
    let body = candidate.text.rsplit([':', '=', '>', ' ', '\t', '"', '\'']).next()?;
    (body.len() == 40 && !check::is_placeholder(body)).then_some(candidate.text.len())
}

/// `"auth": "dXNlcjpwYXNz"` of docker's configuration.
fn registry_auth(candidate: &Candidate<'_>) -> Option<usize> {
    let coded = candidate.text.rsplit(['"', ' ', '=', ':']).next()?;
    let padding = candidate.text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let coded = if coded.is_empty() {
        candidate.text.trim_end_matches('=').rsplit(['"', ' ', '=', ':']).next()?
    } else {
        coded
    };
    let plain = String::from_utf8(STANDARD.decode(format!("{coded}{}", "=".repeat(padding))).ok()?).ok()?;
    let (user, password) = plain.split_once(':')?;
    (!user.is_empty() && password.len() >= 3).then_some(candidate.text.len())
}

/// `Server=…;Password=…`, `curl -u user:password`, `login x password y`.
fn given_password(candidate: &Candidate<'_>) -> Option<usize> {
    let value = candidate.text.rsplit(['=', ':', ' ']).next()?.trim_matches(['"', '\'']);
    (value.len() >= 4 && !check::is_placeholder(value)).then_some(candidate.text.len())
}

fn slack(candidate: &Candidate<'_>) -> Option<usize> {
    let digits = candidate.text.chars().filter(char::is_ascii_digit).count();
    (candidate.alone() && digits >= 6).then_some(candidate.text.trim_end_matches('-').len())
}

fn openai(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text;
    let body = text.get(3..)?;
    let named = ["proj-", "svcacct-", "admin-", "None-", "or-v1-", "live-", "lf-"]
        .iter()
        .any(|name| body.starts_with(name))
        && body.len() >= 30;
    let digits = body.chars().filter(char::is_ascii_digit).count();
    let plain = body.len() >= 30 && digits >= 3 && !body.contains(['-', '_']);
    let marked = body.contains("T3BlbkFJ");
    (candidate.alone()
        && candidate.last() != Some('.')
        && (marked || named && digits >= 3 || plain)
        && !text.starts_with("sk-ant-"))
    .then_some(text.len())
}

/// Its first part says an algorithm.
fn jwt(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text;
    let head = text.split('.').next()?;
    let head = head.get(..head.len() / 4 * 4)?.replace('-', "+").replace('_', "/");
    let decoded = STANDARD.decode(head).ok()?;
    let json = String::from_utf8_lossy(&decoded);
    (json.starts_with("{\"") && candidate.alone()).then_some(text.trim_end_matches(['.', '-']).len())
}

/// With a body that is more than dots.
fn pem(candidate: &Candidate<'_>) -> Option<usize> {
    let body =
        candidate.text.split("KEY-----").nth(1).or_else(|| candidate.text.split("BLOCK-----").nth(1))?;
    let run = body
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')))
        .map(str::len)
        .max()
        .unwrap_or(0);
    (run >= 20).then_some(candidate.text.len())
}

/// `scheme://user:password@host`.
fn url(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text.trim_end_matches(['.', ';', ':', '\\']);
    let (user, _) = text.split_once("://")?.1.rsplit_once('@')?;
    let password = user.split_once(':')?.1;
    let port =
        password.chars().all(|c| c.is_ascii_digit()) && password.len() <= 5 && candidate.text.contains('?');
    (!check::is_placeholder(password) && !port && !password.starts_with(['{', '[', '<']))
        .then_some(text.len())
}

fn bearer(candidate: &Candidate<'_>) -> Option<usize> {
    let token = candidate.text.split_whitespace().nth(1)?;
    let digits = token.chars().filter(char::is_ascii_digit).count();
    (candidate.alone() && digits >= 2 && !check::is_placeholder(token))
        .then_some(candidate.text.trim_end_matches('.').len())
}

fn basic(candidate: &Candidate<'_>) -> Option<usize> {
    let coded = candidate.text.split_whitespace().nth(1)?;
    let plain = String::from_utf8(STANDARD.decode(coded).ok()?).ok()?;
    let (user, password) = plain.split_once(':')?;
    let printable = plain.chars().all(|c| !c.is_control()) && !user.is_empty() && password.len() >= 3;
    (candidate.alone() && printable).then_some(candidate.text.len())
}

/// `name = value`, where the value looks like chance.
fn generic(candidate: &Candidate<'_>) -> Option<usize> {
    let at = candidate.text.find([':', '='])?;
    let value = candidate.text.get(at..)?.trim_start_matches([':', '=', '>', ' ', '\t', '"', '\'']);
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(char::is_ascii_alphabetic).count();
    let reference = value.contains("://")
        || value.contains('/') && !value.contains('+') && check::entropy(value) < 4.0
        || value.starts_with(['/', '.', '~', '@']);
    let chance = value.len() >= 16 && digits >= 3 && letters >= 3 && check::entropy(value) >= 3.0;
    let mixed = is_password_name(candidate.text.get(..at)?)
        && value.len() >= 8
        && digits >= 2
        && letters >= 3
        && value.chars().any(|c| c.is_ascii_uppercase())
        && value.chars().any(|c| !c.is_ascii_alphanumeric());
    let fine = (chance || mixed) && !check::is_placeholder(value) && !check::is_uuid(value) && !reference;
    fine.then_some(candidate.text.trim_end_matches(['.', ':', '?', '!']).len())
}

fn is_password_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("passw") || name.contains("pwd") || name.contains("passphrase")
}

/// 13 to 19 digits of an issuer, with the check digit, grouped as on a card.
fn card(candidate: &Candidate<'_>) -> Option<usize> {
    let digits = candidate.digits();
    let groups: Vec<usize> = candidate.text.split([' ', '-']).map(str::len).collect();
    let grouped = match groups.as_slice() {
        [_] => true,
        [4, 6, 5] | [4, 6, 4] => true,
        [heads @ .., last] => {
            heads.iter().all(|group| *group == 4) && (1..=4).contains(last) && heads.len() >= 3
        }
        [] => false,
    };
    let touched = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '#');
    let left = candidate.last().is_some_and(touched);
    let right = candidate.after.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let mixed = candidate.text.contains(' ') && candidate.text.contains('-');
    let fine = grouped && !mixed && !left && !right && check::has_issuer(&digits) && check::luhn(&digits);
    fine.then_some(candidate.text.len())
}

const FILE_ENDINGS: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "js",
    "ts",
    "css",
    "json",
    "py",
    "rs",
    "md",
    "html",
    "ico",
    "zip",
    "gz",
    "tgz",
    "local",
    "internal",
    "lan",
    "localhost",
    "localdomain",
    "service",
    "target",
    "git",
    "socket",
    "timer",
    "mount",
    "conf",
    "yaml",
    "yml",
    "toml",
];

fn email(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text.trim_end_matches(['-', '.']);
    let (user, host) = text.split_once('@')?;
    let user = user.trim_start_matches(['.', '-', '%', '+']);
    let labels: Vec<&str> = host.split('.').collect();
    let top = labels.last()?;
    let first = labels.first()?;
    let versioned = first.trim_start_matches('v').chars().all(|c| c.is_ascii_digit())
        || first.starts_with("2x")
        || first.starts_with("3x");
    let top_fine = top.len() >= 2
        && top.chars().all(|c| c.is_ascii_alphabetic())
        && !FILE_ENDINGS.contains(&top.to_ascii_lowercase().as_str());
    let address = candidate.after == Some(':') || candidate.after == Some('@');
    let in_url = candidate.last().is_some_and(|c| matches!(c, ':' | '@')) && candidate.before.contains("//")
        || candidate.before.ends_with("//");
    let mailto = candidate.before.ends_with("mailto:");
    let fine = !user.is_empty()
        && user != "git"
        && !versioned
        && top_fine
        && !(address && user.len() < 12 && is_login(user, candidate))
        && (!in_url || mailto)
        && candidate.last() != Some('@')
        && labels.iter().all(|label| !label.is_empty());
    fine.then_some(text.len())
}

/// `user@host:path`, as ssh and scp write it.
fn is_login(user: &str, candidate: &Candidate<'_>) -> bool {
    let context = candidate.context();
    matches!(user, "git" | "hg" | "root" | "ubuntu" | "ec2-user" | "deploy" | "admin" | "www")
        || ["ssh ", "scp ", "rsync ", "sftp ", "clone "].iter().any(|word| context.contains(word))
}

fn iban(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text;
    let length = check::iban_length(text.get(..2)?)?;
    let mut compact = String::new();
    let mut end = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()).take(length) {
        compact.push(c);
        end = at + 1;
    }
    let next = text.get(end..)?.chars().next().or(candidate.after);
    let fine = compact.len() == length
        && candidate.alone()
        && !next.is_some_and(|c| c.is_ascii_alphanumeric())
        && check::iban_checks(&compact);
    fine.then_some(end)
}

fn international(candidate: &Candidate<'_>) -> Option<usize> {
    let text = candidate.text.trim_end_matches([' ', '.', '(', ')', '/', '-']);
    let digits = candidate.digits().len();
    let grouped = text.contains([' ', '-', '.', '(']);
    let left = candidate.last().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | ')'));
    let right = text.len() == candidate.text.len()
        && candidate.after.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '%' | '_'));
    let zero = text.starts_with("+0");
    (!left && !right && !zero && (8..=15).contains(&digits) && (grouped || digits >= 10))
        .then_some(text.len())
}

fn american(candidate: &Candidate<'_>) -> Option<usize> {
    let digits = candidate.digits();
    let area = digits.chars().next().is_some_and(|c| ('2'..='9').contains(&c));
    let exchange = digits.chars().nth(3).is_some_and(|c| ('2'..='9').contains(&c));
    let touches =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/' | ':' | '=' | '#' | '$');
    let left = candidate.last().is_some_and(|c| touches(c) && !matches!(c, ':' | '='));
    let right =
        candidate.after.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '/'));
    let spaced = candidate.text.matches(' ').count() == 2;
    let dotted = candidate.text.matches('.').count();
    (area && exchange && !left && !right && !spaced && dotted != 1).then_some(candidate.text.len())
}

/// A number of which the text says that it is a telephone's.
fn spoken(candidate: &Candidate<'_>) -> Option<usize> {
    let digits = candidate.digits().len();
    let groups = candidate.text.matches('.').count();
    let date = candidate.text.contains("20") && candidate.text.matches('-').count() == 2 && digits == 8;
    (candidate.alone()
        && (7..=13).contains(&digits)
        && groups <= 4
        && !date
        && !candidate.after.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
    .then_some(candidate.text.len())
}

fn ssn(candidate: &Candidate<'_>) -> Option<usize> {
    let digits = candidate.digits();
    let (area, rest) = digits.split_at_checked(3)?;
    let (group, serial) = rest.split_at_checked(2)?;
    let given = area != "000"
        && area != "666"
        && !area.starts_with('9')
        && group != "00"
        && serial != "0000"
        && serial.len() == 4;
    let touches = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/');
    let right = candidate.after.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let spaced = candidate.text.contains(' ');
    let said = ["ssn", "social"].iter().any(|word| candidate.context().contains(word));
    (given && !candidate.last().is_some_and(touches) && !right && (!spaced || said))
        .then_some(candidate.text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_run() {
        for rule in RULES {
            assert!(regex::Regex::new(rule.pattern).is_ok(), "{}", rule.class);
            assert!(hookgate_core::pattern::Pattern::parse(rule.anchor).is_ok(), "{}", rule.class);
        }
    }
}

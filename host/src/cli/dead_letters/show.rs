//! `sluice dead-letters show`.

use std::fmt;
use std::io::{IsTerminal, Write as _};

use anyhow::anyhow;
use bytesize::ByteSize;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::render::{Row, rfc3339};
use super::{Failure, Place, failed, partitions, unexpected};
use crate::batch::headers;
use crate::batch::readable::{Header, hex};
use crate::cli::{Exit, printable};
use crate::link::letters::Letter;

/// Arguments of `sluice dead-letters show`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The letter's offset in the dead-letter topic.
    offset: u64,
    #[command(flatten)]
    place: Place,
    /// Partition of the dead-letter topic.
    #[arg(long, default_value_t = 0)]
    partition: u32,
    /// Most bytes of the payload to show.
    #[arg(long, default_value = "4 KiB", value_name = "SIZE")]
    bytes: ByteSize,
    /// JSON, also on a terminal.
    #[arg(long)]
    json: bool,
}

pub async fn execute(arguments: &Arguments, stop: CancellationToken) -> Result<Exit, Failure> {
    // A letter that is named by its place is shown whatever link it is of.
    let selected = arguments.place.select(true)?;
    let mut mailbox = selected.mailbox(stop);
    let letters = &selected.link.dead_letter;
    let missing = || {
        let place = format!(
            "{}/{}/{}",
            letters.stream, letters.topic, arguments.partition
        );
        let error = anyhow!(
            "there is no letter at offset {} of {place} at cluster `{}`: `sluice dead-letters list` shows which there are",
            arguments.offset,
            selected.destination.name
        );
        (Exit::Usage, error)
    };
    let found = partitions(&mut mailbox, Some(arguments.partition)).await?;
    let partition = found.first().ok_or_else(missing)?;
    let polled = mailbox
        .reader(partition)
        .next(arguments.offset)
        .await
        .map_err(failed)?;
    let polled = polled.ok_or_else(missing)?;
    let frame = polled
        .frames()
        .first()
        .filter(|frame| frame.offset == arguments.offset)
        .ok_or_else(missing)?;
    let letter = Letter::read(&polled, frame);
    let most = usize::try_from(arguments.bytes.as_u64()).unwrap_or(usize::MAX);
    let shown = Shown::new(partition.id, &letter, most);
    print(&shown, arguments.json).map_err(|error| unexpected(error.into()))?;
    Ok(Exit::Success)
}

fn print(shown: &Shown, json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json || !stdout.is_terminal() {
        serde_json::to_writer(&mut stdout, shown)?;
        writeln!(stdout)
    } else {
        write!(stdout, "{shown}")
    }
}

/// One letter, whole.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    id: String,
    origin_timestamp: String,
    headers: Vec<Header>,
    payload: Payload,
}

/// The first bytes of a payload, as text where they are UTF-8, else in hexadecimal.
#[derive(Debug, Serialize)]
struct Payload {
    bytes: usize,
    shown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl Shown {
    /// A letter with at most so many bytes of its payload.
    fn new(partition: u32, letter: &Letter<'_>, most_bytes: usize) -> Self {
        let message = &letter.message;
        let headers = headers::parse(message.headers).unwrap_or_default();
        Self {
            row: Row::new(partition, letter),
            id: message.id.to_string(),
            origin_timestamp: rfc3339(message.origin_timestamp),
            headers: headers.into_iter().map(Header::from).collect(),
            payload: Payload::new(message.payload, most_bytes),
        }
    }
}

impl Payload {
    fn new(bytes: &[u8], most_bytes: usize) -> Self {
        let cut = &bytes[..most_bytes.min(bytes.len())];
        let text = match std::str::from_utf8(cut) {
            Ok(text) => Some(text),
            // Cut in the middle of a character.
            Err(error) if cut.len() < bytes.len() && error.error_len().is_none() => {
                std::str::from_utf8(&cut[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        Self {
            bytes: bytes.len(),
            shown: text.map_or(cut.len(), str::len),
            text: text.map(str::to_owned),
            hex: text.is_none().then(|| hex(cut)),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [offset, time, source, why] = self.row.cells();
        writeln!(formatter, "letter    {offset}")?;
        writeln!(formatter, "why       {}", printable(&why))?;
        if !source.is_empty() {
            writeln!(formatter, "time      {time}")?;
            writeln!(formatter, "source    {}", printable(&source))?;
        }
        writeln!(formatter, "id        {}", self.id)?;
        writeln!(formatter, "produced  {}", self.origin_timestamp)?;
        for Header { key, value } in &self.headers {
            let key_kind = match key.kind.as_str() {
                "text" => String::new(),
                kind => format!("{kind} "),
            };
            let (name, kind, value) = (printable(&key.value), &value.kind, printable(&value.value));
            writeln!(formatter, "header    {key_kind}{name} = {kind} {value}")?;
        }
        let Payload {
            bytes,
            shown,
            text,
            hex,
        } = &self.payload;
        let cut = if shown < bytes {
            format!(", of which the first {shown} follow")
        } else {
            String::new()
        };
        let kind = if hex.is_some() { " (hexadecimal)" } else { "" };
        writeln!(formatter, "payload   {bytes} bytes{kind}{cut}")?;
        match text.as_ref().or(hex.as_ref()) {
            Some(content) if !content.is_empty() => writeln!(formatter, "{}", printable(content)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Outgoing;
    use crate::batch::headers::Field;

    fn shown(headers: &[u8], payload: &[u8], most_bytes: usize) -> Shown {
        let letter = Letter {
            offset: 5,
            message: Outgoing {
                id: u128::MAX,
                origin_timestamp: 1_700_000_000_000_000,
                headers,
                payload,
            },
            origin: Err("header sluice-link is missing: this is no dead letter".to_owned()),
        };
        Shown::new(0, &letter, most_bytes)
    }

    #[test]
    fn headers_are_shown_by_kind_and_hostile_text_is_escaped() {
        let text = Field::text;
        let field = |kind, bytes| Field { kind, bytes };
        let half = 0.5_f64.to_le_bytes();
        let list = [
            (text("name"), text("v\u{1b}[31m")),
            (text("small"), field(4, &[0xff])),
            (text("wide"), field(13, &[1; 16])),
            (text("half"), field(15, &half)),
            (text("yes"), field(3, &[1])),
            (text("no bool"), field(3, &[7])),
            (field(1, b"\xfe"), field(77, b"\x01\x02")),
        ];
        let shown = shown(&headers::encode(&list), b"one\ntwo\x07", 4096);
        let expected = "\
letter    5
why       no dead letter: header sluice-link is missing: this is no dead letter
id        340282366920938463463374607431768211455
produced  2023-11-14T22:13:20.000000Z
header    name = text v\\u{1b}[31m
header    small = int8 -1
header    wide = uint128 1334440654591915542993625911497130241
header    half = float64 0.5
header    yes = bool true
header    no bool = bool 0x07
header    raw 0xfe = kind 77 0x0102
payload   8 bytes
one
two\\u{7}
";
        assert_eq!(shown.to_string(), expected);
    }

    #[test]
    fn a_payload_is_cut_between_characters_and_shown_in_hexadecimal_unless_it_is_text() {
        for (payload, most, text, hex, length) in [
            (&b"abc"[..], 4096, Some("abc"), None, 3),
            (b"abc", 2, Some("ab"), None, 2),
            ("aé".as_bytes(), 2, Some("a"), None, 1),
            (b"a\xc3", 4096, None, Some("61c3"), 2),
            (b"\xff\x00\x01", 2, None, Some("ff00"), 2),
            (b"", 0, Some(""), None, 0),
        ] {
            let cut = Payload::new(payload, most);
            assert_eq!((cut.text.as_deref(), cut.hex.as_deref()), (text, hex));
            assert_eq!((cut.bytes, cut.shown), (payload.len(), length));
        }
        let text = shown(&[], b"\xff\x00\x01", 2).to_string();
        assert!(
            text.ends_with("payload   3 bytes (hexadecimal), of which the first 2 follow\nff00\n")
        );
    }
}

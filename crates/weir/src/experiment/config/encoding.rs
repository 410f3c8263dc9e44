//! Text of files written by other programs.

/// Decodes UTF-8 and UTF-16, each with or without a byte order mark. Files begin in ASCII, so UTF-16 without
/// a mark has a zero in each of its first two characters. Each byte that is not UTF-8 is taken as Latin-1
/// (ISO 8859-1). This affects only names for people: numbers and addresses are ASCII. Lines end in LF,
/// whatever ended them in the file.
pub fn decode(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => eight_bits(rest),
        [0xff, 0xfe, rest @ ..] => sixteen_bits(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => sixteen_bits(rest, u16::from_be_bytes),
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => sixteen_bits(bytes, u16::from_le_bytes),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => sixteen_bits(bytes, u16::from_be_bytes),
        _ => eight_bits(bytes),
    };
    // Old spreadsheets end lines in CR alone, at which no comment would end.
    match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n"),
        false => text,
    }
}

fn eight_bits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|&byte| char::from(byte)));
    }
    text
}

fn sixteen_bits(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Editors and programs of different ages write one name in different encodings.
    #[test]
    fn a_name_is_the_same_in_each_encoding() {
        for bytes in [
            "Müller".as_bytes(),
            b"\xef\xbb\xbfM\xc3\xbcller",
            b"M\xfcller",
            b"\xff\xfeM\0\xfc\0l\0l\0e\0r\0",
            b"\xfe\xff\0M\0\xfc\0l\0l\0e\0r",
        ] {
            assert_eq!(decode(bytes), "Müller", "{bytes:x?}");
        }
        for bytes in [b"i\0d\0\xfc\0".as_slice(), b"\0i\0d\0\xfc"] {
            assert_eq!(decode(bytes), "idü");
        }
        // One file has lines of both kinds after another program has appended to it.
        assert_eq!(decode(b"M\xfcller\nM\xc3\xbcller"), "Müller\nMüller");
    }

    #[test]
    fn a_line_ends_in_one_way() {
        assert_eq!(decode(b"a\rb\r\nc\n\r\rd\r"), "a\nb\nc\n\n\nd\n");
        assert_eq!(decode(b"\xff\xfea\0\r\0b\0\r\0\n\0"), "a\nb\n");
    }
}

//! Frames: a 256-byte header, then the body.

use std::io::IoSlice;

use bytes::{BufMut, Bytes, BytesMut};
use iggy_binary_protocol::codes::{LOGIN_REGISTER_CODE, LOGOUT_USER_CODE};
use iggy_binary_protocol::consensus::{
    Command, EvictionHeader, EvictionReason, HEADER_SIZE, Operation, ReplyHeader, RequestHeader,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Largest frame that the server reads.
const FRAME_LIMIT: usize = 64 * 1024 * 1024;

/// A request as it came.
pub struct Request {
    pub header: RequestHeader,
    pub body: Bytes,
}

/// What an answered request carries.
pub type Answer = Result<Vec<Bytes>, u32>;

/// An answer of one part.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every handler ends with an answer"
)]
pub fn whole(body: Bytes) -> Answer {
    Ok(vec![body])
}

impl Request {
    /// As [`code`].
    pub fn code(&self) -> u32 {
        code(&self.header)
    }
}

/// The command code, by which Iggy's documentation names requests. Both logins have the code of the first.
pub fn code(header: &RequestHeader) -> u32 {
    match header.operation {
        Operation::NonReplicated => {
            let code = header.reserved.first_chunk().expect("sixty bytes");
            u32::from_le_bytes(*code)
        }
        Operation::Register => LOGIN_REGISTER_CODE,
        Operation::Logout => LOGOUT_USER_CODE,
        operation => operation.to_command_code().unwrap_or_default(),
    }
}

/// Reads the header of the next request; none at the end of the stream.
///
/// # Errors
/// When the connection breaks or the header is not one.
pub async fn read_header(stream: &mut OwnedReadHalf) -> std::io::Result<Option<RequestHeader>> {
    let mut bytes = Aligned([0; HEADER_SIZE]);
    match stream.read_exact(&mut bytes.0).await {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let header = bytemuck::checked::try_from_bytes::<RequestHeader>(&bytes.0)
        .map_err(|error| invalid(format!("not a request header: {error}")))?;
    let size = header.size as usize;
    if !(HEADER_SIZE..=FRAME_LIMIT).contains(&size) {
        return Err(invalid(format!("a frame of {size} bytes")));
    }
    Ok(Some(*header))
}

/// Reads `length` bytes of the body that follows `header`.
///
/// # Errors
/// When the connection breaks.
pub async fn read_body(stream: &mut OwnedReadHalf, length: usize) -> std::io::Result<Bytes> {
    let mut body = BytesMut::zeroed(length);
    stream.read_exact(&mut body).await?;
    Ok(body.freeze())
}

/// Size of the body that follows `header`.
pub const fn body_length(header: &RequestHeader) -> usize {
    header.size as usize - HEADER_SIZE
}

/// The frame that answers `request`, as parts to be written in turn.
pub fn reply(request: &RequestHeader, answer: &Answer) -> Vec<Bytes> {
    let (status, parts) = match answer {
        Ok(parts) => (0, parts.as_slice()),
        Err(code) => (*code, [].as_slice()),
    };
    let operation = request.operation;
    let framed = status == 0 && (operation.is_result_framed() || operation == Operation::Register);
    let body: usize = parts.iter().map(Bytes::len).sum();
    let size = HEADER_SIZE + body + if framed { 4 } else { 0 };
    let header = ReplyHeader {
        command: Command::Reply,
        size: u32::try_from(size).expect("replies stay below 4 GiB"),
        client: request.client,
        request: request.request,
        operation,
        request_checksum: request.request_checksum,
        op: 1,
        commit: 1,
        status,
        ..ReplyHeader::default()
    };
    let mut head = BytesMut::with_capacity(HEADER_SIZE + 4);
    head.put_slice(bytemuck::bytes_of(&header));
    if framed {
        head.put_u32_le(0);
    }
    std::iter::once(head.freeze())
        .chain(parts.iter().cloned())
        .collect()
}

/// The frame that ends a session.
pub fn eviction(client: u128, reason: EvictionReason) -> Vec<Bytes> {
    let header = EvictionHeader::new(0, 0, 0, client.max(1), reason);
    vec![Bytes::copy_from_slice(bytemuck::bytes_of(&header))]
}

/// Writes a frame.
///
/// # Errors
/// When the connection breaks.
pub async fn write(stream: &mut OwnedWriteHalf, frame: &[Bytes]) -> std::io::Result<()> {
    let mut slices: Vec<_> = frame.iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = slices.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let written = stream.write_vectored(rest).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}

/// Writes the first half of a frame.
///
/// # Errors
/// When the connection breaks.
pub async fn write_half(stream: &mut OwnedWriteHalf, frame: &[Bytes]) -> std::io::Result<()> {
    let whole: Vec<u8> = frame.concat();
    stream.write_all(&whole[..whole.len() / 2]).await
}

fn invalid(reason: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}

/// Headers hold 128-bit integers and are cast in place.
#[repr(align(16))]
struct Aligned([u8; HEADER_SIZE]);

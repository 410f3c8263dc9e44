//! Refusal of a connection in the name of the other end.

use super::{array, checksum, put, Flags, Packet, Tcp};

const ACK: usize = 8;
const FLAGS: usize = 12;
const WINDOW: usize = 14;
const URGENT: usize = 18;
/// Length of a TCP header without options.
const FIXED: usize = 20;
/// The no-operation option (RFC 9293 §3.1).
const NO_OPERATION: u8 = 1;

/// Turns a SYN into a RST that its receiver accepts (RFC 9293 §3.10.7.3). For a SYN without ACK the RST is
/// the answer of a closed port (§3.10.7.1): addresses and ports are swapped, and it goes back. For a SYN with
/// ACK it goes on in the same direction. Options become no-operations. Returns false, with the frame spoilt,
/// if `bytes` is not all of it.
pub fn refuse_syn(bytes: &mut [u8], p: &Packet, tcp: &Tcp) -> bool {
    let (l3, l4) = (p.l3 as usize, p.l4 as usize);
    let answers = tcp.flags.contains(Flags::ACK);
    let mut done = true;
    if !answers {
        if l3 >= 12 {
            done &= swap::<6>(bytes, 0);
        }
        done &= match p.version {
            4 => swap::<4>(bytes, l3 + 12),
            _ => swap::<16>(bytes, l3 + 8),
        };
        done &= swap::<2>(bytes, l4);
        done &= put(bytes, l4 + 4, &0u32.to_be_bytes());
        // The payload of a SYN is not acknowledged.
        done &= put(bytes, l4 + ACK, &tcp.seq.plus(1).0.to_be_bytes());
    }
    let flags = Flags::RST.with(Flags::ACK).0 | u16::from(tcp.header_len / 4) << 12;
    done &= put(bytes, l4 + FLAGS, &flags.to_be_bytes());
    done &= put(bytes, l4 + WINDOW, &[0, 0]) && put(bytes, l4 + URGENT, &[0, 0]);
    let options = l4 + FIXED..l4 + usize::from(tcp.header_len);
    done &= bytes.get_mut(options).map(|options| options.fill(NO_OPERATION)).is_some();
    // The pseudo-header has the same addresses in another order, and so the same sum.
    done && checksum::fill(bytes, p)
}

/// Swaps two neighbouring fields of `N` bytes.
fn swap<const N: usize>(bytes: &mut [u8], at: usize) -> bool {
    let (Some(first), Some(second)) = (array::<N>(bytes, at), array::<N>(bytes, at + N)) else {
        return false;
    };
    put(bytes, at, &second) && put(bytes, at + N, &first)
}

#[cfg(test)]
mod tests {
    use super::super::build::SegmentBuilder;
    use super::super::{packet, tcp};
    use super::*;
    use crate::packet::frame::Checksum;

    fn refused(mut bytes: Vec<u8>) -> (Packet, Tcp, Vec<u8>) {
        let (p, t) = parsed(&bytes);
        assert!(refuse_syn(&mut bytes, &p, &t));
        let (p, t) = parsed(&bytes);
        assert_eq!(checksum::verify(&bytes, bytes.len(), &p), Checksum::Valid);
        (p, t, bytes)
    }

    fn parsed(bytes: &[u8]) -> (Packet, Tcp) {
        let p = packet(bytes, bytes.len()).unwrap();
        (p, tcp(bytes, &p).unwrap())
    }

    #[test]
    fn a_syn_is_answered_in_the_other_s_name() {
        let syns = [
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]),
            SegmentBuilder::v6(0xfd00 << 112 | 1, 0xfd00 << 112 | 2).vlan(5),
        ];
        for syn in syns {
            let syn = syn.macs([1; 6], [2; 6]).ports(40_000, 21).seq(u32::MAX).flags(Flags::SYN);
            let before = syn.mss(1460).ts(7, 0).window_scale(7).build();
            let (p, _) = parsed(&before);
            let (q, t, bytes) = refused(before.clone());
            assert_eq!((q.src, q.dst, t.src_port, t.dst_port), (p.dst, p.src, 21, 40_000));
            assert_eq!((t.seq.0, t.ack.0, t.flags), (0, 0, Flags::RST.with(Flags::ACK)));
            assert_eq!((&bytes[..6], &bytes[6..12]), (&before[6..12], &before[..6]));
        }
    }

    #[test]
    fn an_answer_becomes_a_refusal_that_goes_on() {
        let answer = SegmentBuilder::v4([10, 0, 0, 2], [10, 0, 0, 1]).ports(21, 40_000).seq(900).ack(101);
        let before = answer.flags(Flags::SYN.with(Flags::ACK)).mss(1460).build();
        let (p, _) = parsed(&before);
        let (q, t, _) = refused(before);
        assert_eq!((q.src, q.dst, t.src_port, t.dst_port), (p.src, p.dst, 21, 40_000));
        assert_eq!((t.seq.0, t.ack.0, t.flags), (900, 101, Flags::RST.with(Flags::ACK)));
    }
}

//! Bytes of the built frame, header by header.

use super::{Addresses, SegmentBuilder, Sum};
use crate::packet::wire::UDP;

impl SegmentBuilder {
    pub(super) fn unpadded(&self) -> Vec<u8> {
        let ip = self.ip(&self.transport());
        let Some(session) = self.session else {
            let mut frame = ethernet(self.macs, &self.tags, self.ethertype());
            frame.extend(ip);
            return frame;
        };
        // RFC 2516 section 4: version and type, code, session, length of what follows, PPP's protocol.
        let mut frame = ethernet(self.macs, &self.tags, 0x8864);
        let length = 2 + (ip.len() + self.absent) as u16;
        let protocol = if self.ethertype() == 0x0800 { 0x0021 } else { 0x0057 };
        frame.extend([0x11, 0]);
        frame.extend([session, length, protocol].iter().flat_map(|field: &u16| field.to_be_bytes()));
        frame.extend(ip);
        frame
    }

    fn ethertype(&self) -> u16 {
        match self.addresses {
            Addresses::V4(..) => 0x0800,
            Addresses::V6(..) => 0x86dd,
        }
    }

    fn transport(&self) -> Vec<u8> {
        let udp = self.protocol == UDP;
        let mut segment = if udp { self.udp_header() } else { self.tcp_header() };
        segment.extend(&self.payload);
        let at = if udp { 6 } else { 16 };
        let pseudo = self.pseudo_header((segment.len() + self.absent) as u32);
        let valid = match !naive_sum(&[&pseudo[..], &segment[..]].concat()) {
            0 if udp => 0xffff,
            sum => sum,
        };
        let sum = match self.sum {
            Sum::Valid => valid,
            Sum::Partial => naive_sum(&pseudo),
            Sum::Wrong => valid ^ 1,
            Sum::Raw(sum) => sum,
        };
        segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    fn tcp_header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(self.ports.0.to_be_bytes());
        header.extend(self.ports.1.to_be_bytes());
        header.extend(self.seq.0.to_be_bytes());
        header.extend(self.ack.0.to_be_bytes());
        let options = self.options.len().next_multiple_of(4);
        assert!(options <= 40, "{options} bytes of TCP options");
        header.extend(((5 + options as u16 / 4) << 12 | self.flags.0).to_be_bytes());
        header.extend(self.window.to_be_bytes());
        header.extend([0, 0]);
        header.extend(self.urgent.to_be_bytes());
        header.extend(&self.options);
        header.resize(20 + options, 0);
        header
    }

    fn udp_header(&self) -> Vec<u8> {
        let len = 8 + (self.payload.len() + self.absent) as u16;
        [self.ports.0, self.ports.1, len, 0].iter().flat_map(|f| f.to_be_bytes()).collect()
    }

    fn pseudo_header(&self, len: u32) -> Vec<u8> {
        let mut pseudo = match self.addresses {
            Addresses::V4(src, dst) => [src, dst].concat(),
            Addresses::V6(src, dst) => [src, dst].concat(),
        };
        pseudo.extend((self.protocol as u32).to_be_bytes());
        pseudo.extend(len.to_be_bytes());
        pseudo
    }

    fn ip(&self, transport: &[u8]) -> Vec<u8> {
        match self.addresses {
            Addresses::V4(src, dst) => self.ipv4(src, dst, transport),
            Addresses::V6(src, dst) => self.ipv6(src, dst, transport),
        }
    }

    fn ipv4(&self, src: [u8; 4], dst: [u8; 4], transport: &[u8]) -> Vec<u8> {
        let header_len = 20 + self.ip_options.len();
        let total = header_len + transport.len() + self.absent;
        let total = u16::try_from(total).expect("a packet of at most 65,535 bytes");
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.tos];
        packet.extend(total.to_be_bytes());
        let fragment = match self.fragment {
            None => 0x4000,
            Some((offset, more)) => (more as u16) << 13 | offset,
        };
        packet.extend([0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([self.ttl, self.protocol, 0, 0]);
        packet.extend([src, dst].concat());
        packet.extend(&self.ip_options);
        let sum = !naive_sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(transport);
        packet
    }

    fn ipv6(&self, src: [u8; 16], dst: [u8; 16], transport: &[u8]) -> Vec<u8> {
        let mut extensions = self.extensions.clone();
        if let Some((offset, more)) = self.fragment {
            let field = (offset << 3 | more as u16).to_be_bytes();
            extensions.push((44, vec![field[0], field[1], 0, 0, 0, 7]));
        }
        let mut payload = Vec::new();
        for (i, (_, body)) in extensions.iter().enumerate() {
            let len = (2 + body.len()).next_multiple_of(8);
            let next = extensions.get(i + 1).map_or(self.protocol, |e| e.0);
            let end = payload.len() + len;
            payload.extend([next, (len / 8 - 1) as u8]);
            payload.extend(body);
            payload.resize(end, 0);
        }
        payload.extend(transport);
        let payload_len =
            u16::try_from(payload.len() + self.absent).expect("a payload of at most 65,535 bytes");
        let mut packet = Vec::new();
        packet.extend((6 << 28 | (self.tos as u32) << 20 | self.flow_label).to_be_bytes());
        packet.extend(payload_len.to_be_bytes());
        packet.extend([extensions.first().map_or(self.protocol, |e| e.0), self.ttl]);
        packet.extend([src, dst].concat());
        packet.extend(payload);
        packet
    }
}

pub(super) fn ethernet(macs: ([u8; 6], [u8; 6]), tags: &[(u16, u16)], ethertype: u16) -> Vec<u8> {
    let mut header = [macs.1, macs.0].concat();
    for (tpid, tci) in tags {
        header.extend(tpid.to_be_bytes());
        header.extend(tci.to_be_bytes());
    }
    header.extend(ethertype.to_be_bytes());
    header
}

/// RFC 1071, word by word. The fast sum is tested against it.
fn naive_sum(data: &[u8]) -> u16 {
    let mut sum = 0u32;
    for word in data.chunks(2) {
        sum += (word[0] as u32) << 8 | *word.get(1).unwrap_or(&0) as u32;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

//! The sending end of a flow: bytes written, and samples of the kernel's TCP_INFO.

use super::sys::{tcp_info, TcpInfo};
use super::{Amount, Quantiles, Sent, Series};
use std::os::fd::BorrowedFd;

/// Account of a sender.
pub(super) struct SenderAccount {
    amount: Amount,
    written: u64,
    last: TcpInfo,
    /// Time-outs inferred from the back-off, for kernels that do not count them.
    inferred_rtos: u64,
    srtts_us: Vec<u32>,
    series: Option<Series>,
    cc: String,
}

impl SenderAccount {
    /// Returns an empty account of a flow that carries `amount`.
    pub fn new(amount: Amount, series: bool) -> SenderAccount {
        SenderAccount {
            amount,
            written: 0,
            last: TcpInfo::default(),
            inferred_rtos: 0,
            srtts_us: Vec::new(),
            series: series.then(Series::default),
            cc: String::new(),
        }
    }

    /// Records the congestion control that the socket actually has.
    pub fn uses(&mut self, cc: String) {
        self.cc = cc;
    }

    /// Returns how many of `most` bytes may be written now; zero after all are written.
    pub fn wants(&self, most: usize) -> usize {
        match self.amount {
            Amount::Bytes(all) => usize::try_from(all - self.written).map_or(most, |left| left.min(most)),
            Amount::UntilNs(_) => most,
        }
    }

    /// Records that `bytes` more were written.
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    /// Samples the kernel's state of the flow.
    pub fn sample(&mut self, at: u64, fd: BorrowedFd<'_>) {
        if let Ok(info) = tcp_info(fd) {
            self.take(at, info);
        }
    }

    fn take(&mut self, at: u64, info: TcpInfo) {
        // A smoothed round-trip time changes only with an acknowledgement. Repeated samples of an idle flow
        // would give its value too much weight.
        if info.bytes_acked > self.last.bytes_acked && info.srtt_us > 0 {
            self.srtts_us.push(info.srtt_us);
        }
        // `tcpi_retransmits` counts consecutive time-outs and returns to zero with progress. Time-outs that
        // come and go between two samples are missed.
        self.inferred_rtos += u64::from(info.backoffs.saturating_sub(self.last.backoffs));
        if let Some(s) = &mut self.series {
            s.t_ns.push(at);
            s.cwnd_packets.push(info.cwnd);
            s.srtt_us.push(info.srtt_us);
            s.acked_bytes.push(info.bytes_acked.min(self.written));
            s.unacked_packets.push(info.unacked);
            s.window_bytes.push(info.peer_window);
            s.retransmits.push(info.total_retrans);
            s.pacing_bps.push(info.pacing_bytes_per_s.saturating_mul(8));
        }
        self.last = info;
    }

    /// Returns the account at the end.
    pub fn finish(mut self) -> Sent {
        Sent {
            written: self.written,
            // The kernel counts the SYN as a byte.
            acked: self.last.bytes_acked.min(self.written),
            retransmits: self.last.total_retrans.into(),
            rtos: self.last.total_rto.map_or(self.inferred_rtos, u64::from),
            rtos_counted: self.last.total_rto.is_some(),
            rtt_us: Quantiles::of(&mut self.srtts_us),
            // The kernel's value for "none yet" is all ones.
            min_rtt_us: Some(self.last.min_rtt_us).filter(|&r| r > 0 && r < u32::MAX),
            mss: self.last.mss,
            cc: self.cc,
            series: self.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(bytes_acked: u64, srtt_us: u32, backoffs: u8) -> TcpInfo {
        TcpInfo { bytes_acked, srtt_us, backoffs, min_rtt_us: u32::MAX, ..TcpInfo::default() }
    }

    #[test]
    fn an_idle_flow_s_round_trip_counts_once() {
        let mut s = SenderAccount::new(Amount::Bytes(100), true);
        s.wrote(60);
        assert_eq!(s.wants(1000), 40);
        s.take(1, info(1, 50, 0));
        s.take(2, info(61, 90, 0));
        s.take(3, info(61, 90, 0));
        let sent = s.finish();
        assert_eq!(sent.rtt_us.unwrap().samples, 2);
        assert_eq!((sent.acked, sent.min_rtt_us), (60, None));
        assert_eq!(sent.series.unwrap().t_ns, [1, 2, 3]);
    }

    #[test]
    fn time_outs_are_inferred_from_the_back_off() {
        let mut s = SenderAccount::new(Amount::UntilNs(9), false);
        for (t, backoffs) in [0, 1, 3, 0, 0, 1, 0].into_iter().enumerate() {
            s.take(t as u64, info(1, 1, backoffs));
        }
        let sent = s.finish();
        assert_eq!((sent.rtos, sent.rtos_counted), (4, false));
    }

    #[test]
    fn time_outs_that_the_kernel_counts_are_taken() {
        let mut s = SenderAccount::new(Amount::UntilNs(9), false);
        s.take(1, TcpInfo { total_rto: Some(5), backoffs: 1, ..TcpInfo::default() });
        let sent = s.finish();
        assert_eq!((sent.rtos, sent.rtos_counted), (5, true));
    }
}

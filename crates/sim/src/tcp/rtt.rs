//! Round-trip time and retransmission time-out (RFC 6298).

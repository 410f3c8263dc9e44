//! What a receiver has got out of order.

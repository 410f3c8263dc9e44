//! Link sharing: a tree of classes, whose leaves are queues.
//!
//! A class has a *rate* that is its own and may have a *ceiling*. While it sends less than its rate, it is served before all that
//! have more; beyond it, it borrows what its parent does not use, up to its ceiling, and so on up the tree. Who borrows is chosen
//! by priority, then by weight. These are the rules that administrators know from Linux's HTB; what is different is named below.
//!
//! - A frame leaves as soon as the classes on its way have room for it, and its bytes are charged to the byte: each class
//!   knows until when what it has sent is paid for ([`bucket`]). A class that has something waiting all the time sends, over any
//!   time, its rate times that time but for one frame.
//! - A class whose ceiling is reached blocks all that is below it, so that a ceiling holds at any time. The ceiling of a class at the
//!   top is its rate: it is the link. HTB lets a class below its rate send whatever its parents have sent.
//! - Of classes below their rates the one whose first frame would be through first at its own rate is served first (as
//!   WF²Q+: Bennett and Zhang, 1997), so that whoever is admitted gets its rate and is late by one frame of its own and one of
//!   the link. Those with a lower number as priority still come first, as in HTB.
//! - Between classes that borrow from the same parent each has a virtual time, what it has borrowed divided by its weight, and the
//!   least comes next (start-time fair queueing: Goyal, Vin and Cheng, 1996). HTB goes round the leaves, whatever their parents.
//!
//! Each class offers its parent the best that it has, and each parent has its children's offers in a heap. So the next frame is
//! found from the top, and a frame changes offers on its way up only. Classes that wait for time are in one heap. The cost of a frame
//! grows with the depth of the tree, with the logarithm of the number of classes, and not with the number of flows.

mod adopt;
mod available;
mod bucket;
pub(crate) mod heap;
mod serve;
mod spec;
#[cfg(test)]
mod tests;
mod tree;
mod usage;

pub use spec::{check, FlowMin, Refusal, Spec, Unsound, PRIORITIES, WEIGHTS};
pub(crate) use tree::HISTOGRAMS;
pub use tree::{LeafStats, Popped, Tree};

//! Accounts of what senders may send, which the hooks read: the payload that a flow's sender was permitted.
//! Payload beyond that is charged to the class as it passes.

use super::slots::Places;
use crate::flow::{ClassId, FlowId};
use crate::steer::{Bound, FlowBound, VirtualQueue};
use core::cell::OnceCell;

/// Account of the sender of flow `i`, the class of which is at `place`.
pub(super) fn account_of<'a>(
    flows: &'a OnceCell<Places<FlowBound>>,
    bounds: &Places<Bound>,
    place: ClassId,
    i: FlowId,
) -> Option<&'a VirtualQueue> {
    let flow = flows.get()?.all().get(i.index())?;
    bounds.all().get(place.index())?.counts_beyond().then(|| flow.queue())
}

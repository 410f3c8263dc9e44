//! Totals in memory that outlives a gateway, so that what the next one reports goes on where this one
//! stopped.
//!
//! A class is found again by its name and direction. Its place among the accounts is its place in the
//! gateway.

use super::stats::{ClassStats, GatewayStats};
use crate::classify::ClassConfig;
use crate::flow::ClassId;
use crate::stats::{DropReason, Ledger};
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};
use std::collections::HashMap;

/// Totals of a class, with what it is found by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassAccount {
    /// Hash of its name and direction; 0: an unused account.
    id: u64,
    /// Totals of the class.
    stats: ClassStats,
}

/// Memory for the totals of one gateway after the other. Zeros are the totals of none.
#[derive(Debug)]
pub struct Accounts {
    /// Accounts of the gateway.
    pub totals: &'static mut GatewayStats,
    /// Accounts of its classes, by place.
    pub classes: &'static mut [ClassAccount],
    /// The account of frames goes on, too, unless the queues behind the gateway begin again.
    pub frames: bool,
}

/// A value of one's own, or one that outlives its owner.
#[derive(Debug)]
pub(in crate::gateway) enum Kept<T: 'static> {
    Own(Box<T>),
    Outlives(&'static mut T),
}

impl<T> Deref for Kept<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Kept::Own(value) => value,
            Kept::Outlives(value) => value,
        }
    }
}

impl<T> DerefMut for Kept<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Kept::Own(value) => value,
            Kept::Outlives(value) => value,
        }
    }
}

/// The accounts of classes by place: a gateway's own, as many as there are places, or those that outlive it.
#[derive(Debug)]
pub(in crate::gateway) enum ClassAccounts {
    Own(Vec<ClassAccount>),
    Outlive(&'static mut [ClassAccount]),
}

impl ClassAccounts {
    /// Most places.
    pub(in crate::gateway) fn most(&self) -> Option<usize> {
        match self {
            ClassAccounts::Own(_) => None,
            ClassAccounts::Outlive(accounts) => Some(accounts.len()),
        }
    }

    /// Returns whether they outlive the gateway.
    pub(super) fn outlive(&self) -> bool {
        matches!(self, ClassAccounts::Outlive(_))
    }

    /// The places in which these classes are found again, in their order. What classes had at one time, and
    /// not so far, is nothing.
    pub(in crate::gateway) fn find(&mut self, classes: &[ClassConfig]) -> Vec<Option<ClassId>> {
        let ClassAccounts::Outlive(accounts) = self else { return vec![None; classes.len()] };
        let used = accounts.iter_mut().zip(0..).filter(|(account, _)| account.id != 0);
        let known = |(account, place): (&mut ClassAccount, u32)| {
            account.stats.begin_anew();
            (account.id, ClassId(place))
        };
        let mut known: HashMap<u64, ClassId> = used.map(known).collect();
        classes.iter().map(|class| known.remove(&id(class))).collect()
    }

    /// A class begins in this place.
    pub(in crate::gateway) fn open(&mut self, place: ClassId, class: &ClassConfig) {
        let account = ClassAccount { id: id(class), stats: ClassStats::default() };
        match self {
            ClassAccounts::Own(own) if place.index() == own.len() => own.push(account),
            _ => self[place] = account,
        }
    }

    #[inline(always)]
    pub(in crate::gateway) fn stats(&self, place: ClassId) -> &ClassStats {
        &self[place].stats
    }

    #[inline(always)]
    pub(super) fn stats_mut(&mut self, place: ClassId) -> &mut ClassStats {
        &mut self[place].stats
    }
}

impl core::ops::Index<ClassId> for ClassAccounts {
    type Output = ClassAccount;
    #[inline(always)]
    fn index(&self, place: ClassId) -> &ClassAccount {
        match self {
            ClassAccounts::Own(own) => &own[place.index()],
            ClassAccounts::Outlive(accounts) => &accounts[place.index()],
        }
    }
}

impl core::ops::IndexMut<ClassId> for ClassAccounts {
    #[inline(always)]
    fn index_mut(&mut self, place: ClassId) -> &mut ClassAccount {
        match self {
            ClassAccounts::Own(own) => &mut own[place.index()],
            ClassAccounts::Outlive(accounts) => &mut accounts[place.index()],
        }
    }
}

/// Key of a class. It is the same in every process of one binary.
fn id(class: &ClassConfig) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (&class.name, class.direction as u8).hash(&mut hasher);
    hasher.finish().max(1)
}

impl GatewayStats {
    /// Another gateway goes on counting. Frames that the one before it held are lost.
    pub(in crate::gateway) fn begin_anew(&mut self, frames: bool) {
        if !frames {
            self.ledger = Ledger::default();
        }
        let lost = self.ledger.held();
        self.ledger.drops.add(DropReason::Shutdown, lost);
    }
}

impl ClassStats {
    /// Another gateway goes on counting: it holds nothing yet, and has guaranteed nothing.
    pub(in crate::gateway) fn begin_anew(&mut self) {
        (self.held_bytes, self.held_acks, self.guaranteed) = (0, 0, 0);
        (self.ack_queue_bytes, self.data_bytes) = (0, 0);
    }
}

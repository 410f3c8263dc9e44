//! Offloads and queues of an interface (`SIOCETHTOOL`).

use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// An interface whose settings are read and changed.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

/// An offload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name in the kernel, which `ethtool -k` prints where it knows no shorter one: `rx-gro`,
    /// `tx-tcp-segmentation`.
    pub name: String,
    /// True if it is on now.
    pub on: bool,
    /// True if it can be changed.
    pub changeable: bool,
}

impl Ethtool {
    /// Opens the interface `name` of this network namespace.
    pub fn open(name: &str) -> io::Result<Ethtool> {
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut text = [0; libc::IFNAMSIZ];
        for (to, from) in text.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Ethtool { socket, name: text })
    }

    /// Runs the command in the first of `words`; the answer replaces them.
    fn call(&self, words: &mut [u32]) -> io::Result<i32> {
        // SAFETY: zero is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: both structures are valid for reads and writes. Every caller below makes `words` as long as
        // the kernel writes for its command.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(result)
    }

    /// Returns the name of the driver.
    pub fn driver(&self) -> io::Result<String> {
        // struct ethtool_drvinfo is 196 bytes; its first string, of 32 bytes, is the name.
        let mut words = [0u32; 49];
        words[0] = ETHTOOL_GDRVINFO;
        self.call(&mut words)?;
        let bytes: Vec<u8> = words[1..9].iter().flat_map(|w| w.to_ne_bytes()).collect();
        Ok(until_nul(&bytes))
    }

    /// Returns all offloads that the kernel knows, in its order.
    pub fn features(&self) -> io::Result<Vec<Feature>> {
        let names = self.feature_names()?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: cmd, size, then per block available, requested, active, never_changed.
        let mut words = vec![0u32; 2 + blocks * 4];
        (words[0], words[1]) = (ETHTOOL_GFEATURES, blocks as u32);
        self.call(&mut words)?;
        let bit = |i: usize, field: usize| words[2 + i / 32 * 4 + field] >> (i % 32) & 1 == 1;
        let feature =
            |(i, name): (usize, String)| Feature { name, on: bit(i, 2), changeable: bit(i, 0) && !bit(i, 3) };
        Ok(names.into_iter().enumerate().map(feature).collect())
    }

    /// Switches one offload. The kernel may refuse silently or change other offloads, too: read them again.
    pub fn set_feature(&self, name: &str, on: bool) -> io::Result<()> {
        let names = self.feature_names()?;
        let index = names.iter().position(|n| n == name).ok_or(io::ErrorKind::NotFound)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: cmd, size, then per block valid, requested.
        let mut words = vec![0u32; 2 + blocks * 2];
        (words[0], words[1]) = (ETHTOOL_SFEATURES, blocks as u32);
        words[2 + index / 32 * 2] = 1 << (index % 32);
        words[3 + index / 32 * 2] = u32::from(on) << (index % 32);
        self.call(&mut words).map(drop)
    }

    fn feature_names(&self) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, u64 mask, then one count per set asked for.
        let mut info = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
        let mask = (1u64 << ETH_SS_FEATURES).to_ne_bytes();
        info[2] = u32::from_ne_bytes(mask[..4].try_into().expect("four bytes"));
        info[3] = u32::from_ne_bytes(mask[4..].try_into().expect("four bytes"));
        self.call(&mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, set, count, then the strings.
        let mut words = vec![0u32; 3 + count * ETH_GSTRING_LEN / 4];
        (words[0], words[1], words[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32);
        self.call(&mut words)?;
        let bytes: Vec<u8> = words[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
        Ok(bytes.chunks(ETH_GSTRING_LEN).map(until_nul).collect())
    }
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_features() {
        let lo = Ethtool::open("lo").unwrap();
        let features = lo.features().unwrap();
        let loopback = features.iter().find(|f| f.name == "loopback").unwrap();
        assert!(loopback.on && !loopback.changeable);
        assert!(Ethtool::open("a-name-that-is-too-long").is_err());
    }
}

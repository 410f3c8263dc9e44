//! The programs on the client and the server: this program again, in their namespaces.

use rustix::net::{AddressFamily, SocketType};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const ECHO: u16 = 7000;
const SINK: u16 = 7001;
const SOURCE: u16 = 7002;
const ANSWER: u16 = 7003;
const CROWD: u16 = 7004;
const MIRROR: u16 = 7005;
const DISCARD: u16 = 7006;

pub fn main(args: &[String]) {
    let number = |i: usize| args[i].parse::<u64>().unwrap();
    match args[0].as_str() {
        "serve" => serve(),
        "ping" => println!("{}", ping(&args[1], number(2), Duration::from_millis(number(3)))),
        "send" => println!("{}", send(&args[1], Duration::from_millis(number(2)))),
        "receive" => println!("{}", receive(&args[1], Duration::from_millis(number(2)))),
        "receive-marked" => {
            println!("{}", receive_by(connect_marked(&args[1]), Duration::from_millis(number(2))));
        }
        "scheduled" => println!("{}", scheduled(&args[1], number(2))),
        "marked" => marked(&args[1], number(2)),
        "ask" => println!("{}", ask(&args[1], number(2))),
        "crowd" => println!("{}", crowd(&args[1], number(2) as usize, number(3) as usize)),
        "both" => println!("{}", both(&args[1], Duration::from_millis(number(2)))),
        "datagrams" => println!("{}", datagrams(&args[1], number(2), Duration::from_millis(number(3)))),
        "tunnel" => tunnel(&args[1], &args[2], &args[3]),
        "strip" => println!("{}", strip(&args[1])),
        "foreign" => foreign(&args[1], &args[2]),
        other => panic!("{other}"),
    }
}

/// Echoes datagrams, reads whatever connections send, writes to those that want to read, answers requests.
fn serve() {
    let echo = UdpSocket::bind(("::", ECHO)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], from);
        }
    });
    // What comes is left where it is until there is no room.
    let _discard = UdpSocket::bind(("::", DISCARD)).unwrap();
    accept(SOURCE, |mut stream| {
        let data = vec![0; 1 << 16];
        while stream.write_all(&data).is_ok() {}
    });
    accept(ANSWER, |mut stream| {
        stream.set_nodelay(true).unwrap();
        let (mut request, answer) = ([0; 8], vec![0; 20_000]);
        while stream.read_exact(&mut request).is_ok() && stream.write_all(&answer).is_ok() {}
    });
    hold_open(CROWD);
    accept(MIRROR, |mut stream| {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..len]).is_err() {
                break;
            }
        }
    });
    let sink = accept(SINK, |mut stream| {
        let mut buffer = vec![0; 1 << 17];
        while stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
    });
    sink.join().unwrap();
}

fn accept(port: u16, serve: impl Fn(TcpStream) + Copy + Send + 'static) -> std::thread::JoinHandle<()> {
    let listener = TcpListener::bind(("::", port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || serve(stream));
        }
    })
}

/// Accepts connections and leaves them alone: what comes is acknowledged by the kernel.
fn hold_open(port: u16) {
    allow_many_files();
    let listener = TcpListener::bind(("::", port)).unwrap();
    // SAFETY: no pointers.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 4096) }, 0);
    std::thread::spawn(move || {
        let _open: Vec<TcpStream> = listener.incoming().map_while(Result::ok).collect();
    });
}

fn allow_many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for both calls.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit)
    };
    assert_eq!(done, 0);
}

/// Opens `count` connections, gives the gateway a moment to tell the kernel of all of them, and writes
/// `bytes` on each. When all of them are acknowledged, says when that was, in milliseconds of
/// CLOCK_MONOTONIC.
fn crowd(server: &str, count: usize, bytes: usize) -> u64 {
    allow_many_files();
    let data = vec![0; bytes];
    let connect = |_| TcpStream::connect((server, CROWD)).unwrap();
    let mut streams: Vec<TcpStream> = (0..count).map(connect).collect();
    std::thread::sleep(Duration::from_secs(2));
    streams.iter_mut().for_each(|stream| stream.write_all(&data).unwrap());
    let until = Instant::now() + crate::lab::PATIENCE;
    while !streams.is_empty() {
        streams.retain(|stream| unacknowledged(stream) > 0);
        assert!(Instant::now() < until, "{} connections have bytes left", streams.len());
        std::thread::sleep(Duration::from_millis(5));
    }
    weir_io::sys::clock::now().as_nanos() / 1_000_000
}

/// Sends for so long what comes back meanwhile, and says whether it is what was sent.
fn both(server: &str, time: Duration) -> &'static str {
    // A prime, so that no segment or buffer begins with the same byte twice in a row.
    const PERIOD: usize = 251;
    let data: Vec<u8> = (0..PERIOD * 64).map(|i| (i % PERIOD) as u8).collect();
    let mut stream = TcpStream::connect((server, MIRROR)).unwrap();
    let mut back = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
        while let Ok(len @ 1..) = back.read(&mut buffer) {
            let right =
                buffer[..len].iter().enumerate().all(|(i, byte)| usize::from(*byte) == (at + i) % PERIOD);
            if !right {
                return None;
            }
            at += len;
        }
        Some(at)
    });
    let (started, mut sent) = (Instant::now(), 0);
    while started.elapsed() < time {
        stream.write_all(&data).unwrap();
        sent += data.len();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    if reader.join().unwrap() == Some(sent) {
        "right"
    } else {
        "wrong"
    }
}

/// Bytes that were written and are not acknowledged.
fn unacknowledged(stream: &TcpStream) -> i32 {
    let mut left = 0;
    // SAFETY: `left` is valid for writes.
    assert_eq!(unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut left) }, 0);
    left
}

/// Sends `count` numbered datagrams, and prints how many came back, the longest run of those
/// that did not, and how many came back twice.
fn ping(server: &str, count: u64, interval: Duration) -> String {
    let socket = UdpSocket::bind(if server.contains(':') { "[::]:0" } else { "0.0.0.0:0" }).unwrap();
    socket.connect((server, ECHO)).unwrap();
    let back = socket.try_clone().unwrap();
    back.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let counter = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        let (mut seen, mut twice) = (vec![false; count as usize], 0);
        // A refusal from a port that is not open yet is an error here, once.
        while (twice > 0 || seen.contains(&false)) && back.recv(&mut buffer).is_ok() {
            let number = u64::from_ne_bytes(buffer[..8].try_into().unwrap()) as usize;
            twice += u64::from(std::mem::replace(&mut seen[number], true));
        }
        (seen, twice)
    });
    let started = Instant::now();
    for i in 0..count {
        std::thread::sleep((interval * i as u32).saturating_sub(started.elapsed()));
        let _ = socket.send(&i.to_ne_bytes());
    }
    let (seen, twice) = counter.join().unwrap();
    let longest = seen.split(|seen| *seen).map(<[bool]>::len).max().unwrap();
    format!("{} {longest} {twice}", seen.iter().filter(|seen| **seen).count())
}

/// Gives what a socket sends mark 6 and priority 1:5, which is also the number of a class.
fn mark(socket: &impl AsRawFd) {
    for (option, value) in [(libc::SO_MARK, 6u32), (libc::SO_PRIORITY, 0x0001_0005)] {
        // SAFETY: `value` is valid for reads of its size.
        let result = unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), 4)
        };
        assert_eq!(result, 0);
    }
}

/// Sends a datagram that departs in this many milliseconds, and says after how many its echo comes.
fn scheduled(server: &str, ahead: u64) -> u128 {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((server, ECHO)).unwrap();
    let clock = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
    let (level, size) = (libc::SOL_SOCKET, size_of_val(&clock) as libc::socklen_t);
    let fd = socket.as_raw_fd();
    // SAFETY: `clock` is valid for reads of its size.
    let set = unsafe { libc::setsockopt(fd, level, libc::SO_TXTIME, (&raw const clock).cast(), size) };
    assert_eq!(set, 0);
    let time = weir_io::sys::clock::now().as_nanos() + ahead * 1_000_000;
    // The control message: its length, level and type, and the time.
    let mut control = [24, level as u64 | (libc::SCM_TXTIME as u64) << 32, time];
    let mut data = [7u8; 8];
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: zero is a valid header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
    let started = Instant::now();
    // SAFETY: the header and what it points to are valid for the call.
    assert_eq!(unsafe { libc::sendmsg(fd, &message, 0) }, 8);
    socket.set_read_timeout(Some(crate::lab::PATIENCE)).unwrap();
    assert_eq!(socket.recv(&mut data).unwrap(), 8);
    started.elapsed().as_millis()
}

/// A connection whose segments have mark and priority, the SYN too.
fn connect_marked(server: &str) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    mark(&socket);
    let address = std::net::SocketAddr::new(server.parse().unwrap(), SOURCE);
    rustix::net::connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

/// Sends this many datagrams with mark and priority, 1 ms apart.
fn marked(server: &str, count: u64) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    mark(&socket);
    socket.connect((server, DISCARD)).unwrap();
    for _ in 0..count {
        socket.send(&[0; 1000]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends datagrams of 1000 bytes at this many kbit/s for so long, and says how many.
fn datagrams(server: &str, kbit: u64, time: Duration) -> u64 {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((server, DISCARD)).unwrap();
    let (started, apart, mut sent) = (Instant::now(), Duration::from_micros(8_000_000 / kbit), 0);
    while apart * (sent as u32) < time {
        std::thread::sleep((apart * sent as u32).saturating_sub(started.elapsed()));
        // A refusal is an error here.
        let _ = socket.send(&[0; 1000]);
        sent += 1;
    }
    sent
}

/// Sends for so long and says how many bytes a second went out.
fn send(server: &str, time: Duration) -> u64 {
    let mut stream = TcpStream::connect((server, SINK)).unwrap();
    let started = Instant::now();
    let mut sent = 0u64;
    let data = vec![0; 1 << 16];
    while started.elapsed() < time {
        stream.write_all(&data).unwrap();
        sent += data.len() as u64;
    }
    // All of it has arrived when the other side has closed too.
    stream.shutdown(Shutdown::Write).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    sent * 1000 / started.elapsed().as_millis() as u64
}

/// Receives for so long, and says how many bytes a second came, the longest time in milliseconds without any
/// after the first 500, and how many came in each second.
fn receive(server: &str, time: Duration) -> String {
    receive_by(TcpStream::connect((server, SOURCE)).unwrap(), time)
}

fn receive_by(mut stream: TcpStream, time: Duration) -> String {
    let started = Instant::now();
    let (mut got, mut data) = (0u64, vec![0; 1 << 14]);
    let (mut last, mut gap) = (started, Duration::ZERO);
    let mut seconds = Vec::new();
    while started.elapsed() < time {
        let len = stream.read(&mut data).unwrap() as u64;
        got += len;
        let now = Instant::now();
        if now - started > Duration::from_millis(500) {
            gap = gap.max(now - last);
        }
        last = now;
        seconds.resize((now - started).as_secs() as usize + 1, 0);
        *seconds.last_mut().unwrap() += len;
    }
    let rate = got * 1000 / started.elapsed().as_millis() as u64;
    let seconds: Vec<String> = seconds.iter().map(u64::to_string).collect();
    format!("{rate} {} {}", gap.as_millis(), seconds.join(" "))
}

/// Small requests one after the other over one connection; how many were answered in time.
fn ask(server: &str, count: u64) -> u64 {
    let mut stream = TcpStream::connect((server, ANSWER)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = vec![0; 20_000];
    (0..count)
        .take_while(|i| stream.write_all(&i.to_ne_bytes()).is_ok() && stream.read_exact(&mut answer).is_ok())
        .count() as u64
}

/// Attaches a program to an interface that ends the chain of programs (`TC_ACT_OK`), in front of those that
/// are there, and makes a file.
fn foreign(interface: &str, ready: &str) {
    use libbpf_rs::libbpf_sys as sys;
    // r0 = 0; exit
    let instructions = [[0xb7u8, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let (kind, name) = (sys::BPF_PROG_TYPE_SCHED_CLS, c"foreign".as_ptr());
    // SAFETY: name, licence and instructions are valid for the call; no options.
    let program = unsafe {
        sys::bpf_prog_load(kind, name, c"GPL".as_ptr(), instructions.as_ptr().cast(), 2, std::ptr::null_mut())
    };
    assert!(program >= 0, "{program}");
    let index = weir_io::sys::link::find(interface).unwrap().unwrap().index;
    for hook in [sys::BPF_TCX_INGRESS, sys::BPF_TCX_EGRESS] {
        // SAFETY: zero is a valid value of these options.
        let mut options: sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
        (options.sz, options.flags) = (size_of_val(&options) as _, sys::BPF_F_BEFORE);
        // SAFETY: the options are valid for the call.
        let link = unsafe { sys::bpf_link_create(program, index as i32, hook, &options) };
        assert!(link >= 0, "{link}");
    }
    std::fs::write(ready, "").unwrap();
    loop {
        std::thread::park();
    }
}

/// Takes all programs off an interface, whichever process has put them there. Returns their number.
fn strip(interface: &str) -> usize {
    use libbpf_rs::libbpf_sys as sys;
    use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
    let index = weir_io::sys::link::find(interface).unwrap().unwrap().index;
    let programs = [sys::BPF_TCX_INGRESS, sys::BPF_TCX_EGRESS].map(|kind| {
        let mut numbers = [0u32; 64];
        let mut options = sys::bpf_prog_query_opts { prog_ids: numbers.as_mut_ptr(), ..Default::default() };
        options.sz = size_of_val(&options) as _;
        options.__bindgen_anon_1.count = numbers.len() as u32;
        // SAFETY: the options are valid for the call, and `prog_ids` for as many numbers as they say.
        unsafe { sys::bpf_prog_query_opts(index as i32, kind, &mut options) };
        numbers
    });
    // Links tell the number of an interface, which others in other namespaces have as well.
    let is_here = |program: u32| programs.iter().flatten().any(|number| *number == program);
    let is_on = |info: &LinkTypeInfo| matches!(info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == index);
    let links = LinkInfoIter::default().filter(|link| is_on(&link.info) && is_here(link.prog_id));
    links
        .filter(|link| {
            // SAFETY: no pointers.
            let fd = unsafe { sys::bpf_link_get_fd_by_id(link.id) };
            // SAFETY: a descriptor, which this process has until its end.
            fd >= 0 && unsafe { sys::bpf_link_detach(fd) } == 0
        })
        .count()
}

/// A wire of packets between a TUN interface here and one in another namespace, for ever.
fn tunnel(here: &str, namespace: &str, there: &str) {
    let near = tun(here);
    let other = std::fs::File::open(format!("/var/run/netns/{namespace}")).unwrap();
    // SAFETY: a descriptor of a namespace, for this thread.
    assert_eq!(unsafe { libc::setns(other.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
    let far = tun(there);
    let copy = |mut from: std::fs::File, mut to: std::fs::File| {
        std::thread::spawn(move || {
            let mut packet = vec![0; 1 << 16];
            while let Ok(len) = from.read(&mut packet) {
                // An interface that is down takes nothing.
                let _ = to.write(&packet[..len]);
            }
        })
    };
    let back = copy(far.try_clone().unwrap(), near.try_clone().unwrap());
    copy(near, far).join().unwrap();
    back.join().unwrap();
}

fn tun(name: &str) -> std::fs::File {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    const IFF_TUN: i16 = 1;
    const IFF_NO_PI: i16 = 0x1000;
    let file = std::fs::File::options().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI;
    // SAFETY: `request` is valid for the call.
    assert_eq!(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &mut request) }, 0);
    file
}

//! Linux I/O: AF_XDP ports, BPF programs, the driver loop that runs a node in real time.

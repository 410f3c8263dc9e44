// One end of a connection with gVisor's netstack, over the TAP device "lan" in front of the bridge.
//
// usage: netstack sender|receiver reno|cubic
//
// It prints the bytes that it counts. weir-stacks runs it inside a namespace.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// As in src/path.rs and src/main.rs.
var (
	near = tcpip.AddrFrom4([4]byte{10, 77, 0, 1})
	far  = tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{10, 77, 0, 2}), Port: 5001}
)

const (
	tap      = "lan"
	nic      = 1
	mtu      = 1500
	mac      = "\x02\x00\x00\x00\x09\x01"
	begins   = 2 * time.Second
	ends     = 6 * time.Second
	patience = 5 * time.Second
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: netstack sender|receiver reno|cubic"))
	}
	s, err := newStack(os.Args[2])
	if err != nil {
		fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, s, far, ipv4.ProtocolNumber)
	if err != nil {
		fail(err)
	}
	started := time.Now()
	if err := c.SetDeadline(started.Add(ends + patience)); err != nil {
		fail(err)
	}
	if os.Args[1] == "sender" {
		pour(c)
		fmt.Println(0)
	} else {
		fmt.Println(drain(c, started))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "netstack:", err)
	os.Exit(2)
}

// A host with one address, whose connections have this congestion control.
func newStack(control string) (*stack.Stack, error) {
	fd, err := tun.OpenTAP(tap)
	if err != nil {
		return nil, err
	}
	link, err := fdbased.New(&fdbased.Options{
		FDs:            []int{fd},
		MTU:            mtu,
		EthernetHeader: true,
		Address:        tcpip.LinkAddress(mac),
	})
	if err != nil {
		return nil, err
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	cc := tcpip.CongestionControlOption(control)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &cc); err != nil {
		return nil, fmt.Errorf("%s: %s", control, err)
	}
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return nil, fmt.Errorf("SACK: %s", err)
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("%s: %s", tap, err)
	}
	own := tcpip.AddressWithPrefix{Address: near, PrefixLen: 24}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own}
	if err := s.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("address: %s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: own.Subnet(), NIC: nic}})
	return s, nil
}

// Sends until the other end, which has measured by then, closes.
func pour(c net.Conn) {
	go func() {
		_, _ = c.Read(make([]byte, 1))
		c.Close()
	}()
	block := make([]byte, 1<<14)
	for {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

// Counts what arrives in the time that is measured.
func drain(c net.Conn, started time.Time) (bytes int) {
	buffer := make([]byte, 1<<16)
	for time.Since(started) < ends {
		n, err := c.Read(buffer)
		if err != nil {
			break
		}
		if since := time.Since(started); since >= begins && since < ends {
			bytes += n
		}
	}
	c.Close()
	return bytes
}

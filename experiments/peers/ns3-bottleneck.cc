// One bulk transfer over a bottleneck, in ns-3: the twin of ns3-bottleneck.toml.
//
//   g++ -std=c++17 -O2 ns3-bottleneck.cc -o bottleneck $(pkg-config --libs --cflags ns3-point-to-point \
//       ns3-internet ns3-applications ns3-traffic-control)
//   ./bottleneck --cc=TcpNewReno
//
// Debian's package libns3-dev has what it needs. A line of results: goodput in Mbit/s from 10 s to 60 s, the
// packets that were dropped, those of them before 10 s, and the mean and largest queueing delay in ms.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <deque>
#include <iostream>

using namespace ns3;

namespace {

uint64_t received, dropped, early, packets;
double delay_sum, delay_max;
std::deque<Time> since;

void Received(Ptr<const Packet> packet, const Address &) {
    if (Simulator::Now() >= Seconds(10)) received += packet->GetSize();
}

void Dropped(Ptr<const Packet>) {
    ++dropped;
    if (Simulator::Now() < Seconds(10)) ++early;
}

void Enqueued(Ptr<const Packet>) { since.push_back(Simulator::Now()); }

void Dequeued(Ptr<const Packet>) {
    double delay = (Simulator::Now() - since.front()).GetSeconds() * 1e3;
    since.pop_front();
    if (Simulator::Now() < Seconds(10)) return;
    ++packets;
    delay_sum += delay;
    delay_max = std::max(delay_max, delay);
}

}  // namespace

int main(int argc, char **argv) {
    std::string cc = "TcpNewReno";
    CommandLine options;
    options.AddValue("cc", "TcpNewReno or TcpCubic", cc);
    options.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + cc));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    NodeContainer nodes;
    nodes.Create(4);
    PointToPointHelper access, wan;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    wan.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    wan.SetChannelAttribute("Delay", StringValue("19ms"));
    wan.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    NetDeviceContainer left = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer middle = wan.Install(nodes.Get(1), nodes.Get(2));
    NetDeviceContainer right = access.Install(nodes.Get(2), nodes.Get(3));
    InternetStackHelper stack;
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.1.0", "255.255.255.0");
    addresses.Assign(left);
    addresses.SetBase("10.1.2.0", "255.255.255.0");
    addresses.Assign(middle);
    addresses.SetBase("10.1.3.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = addresses.Assign(right);
    // The queue is that of the device alone.
    TrafficControlHelper none;
    for (auto devices : {left, middle, right}) none.Uninstall(devices);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(1), 5000));
    sender.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    ApplicationContainer sinks = sink.Install(nodes.Get(3));
    sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
    // A full queue stops its device, and the layer above it drops.
    nodes.Get(1)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueued));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));

    Simulator::Stop(Seconds(60));
    Simulator::Run();
    std::cout << cc << " goodput " << received * 8 / 50e6 << " drops " << dropped << " before " << early << " delay "
              << delay_sum / std::max<uint64_t>(packets, 1) << " max " << delay_max << std::endl;
    Simulator::Destroy();
}

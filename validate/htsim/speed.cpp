// The scenarios of crates/sim/src/scenarios.rs in htsim (github.com/Broadcom/csg-htsim), over its public classes:
// speed link T | dumbbell N T. Prints one JSON object like ours.
//
// TCP there is a model in packets: no handshake beyond one packet, no receive window, no reordering buffer.

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

const int PACKET = 1250;

// One direction of a link: a queue with its server, and the wire.
struct Hop {
    Queue queue;
    Pipe pipe;

    Hop(EventList& events, uint64_t mbps, double delay_ms, uint64_t packets)
        : queue(speedFromMbps(mbps), mem_b(packets) * PACKET, events, nullptr),
          pipe(timeFromMs(delay_ms), events) {}

    void extend(Route& route) {
        route.push_back(&queue);
        route.push_back(&pipe);
    }
};

struct Flow {
    TcpSrc source;
    TcpSink sink;
    Route there, back;

    explicit Flow(EventList& events) : source(nullptr, nullptr, events) {}

    // Slow start ends at `share` packets.
    void start(TcpRtxTimerScanner& timers, uint64_t share, simtime_picosec at) {
        there.push_back(&sink);
        back.push_back(&source);
        timers.registerTcp(source);
        source.connect(there, back, sink, at);
        source.set_cwnd(2 * PACKET);
        source.set_ssthresh(share * PACKET);
    }
};

// A duplex link, as a pair of hops.
std::vector<Hop*> link(EventList& events, uint64_t mbps, double delay_ms, uint64_t packets) {
    return {new Hop(events, mbps, delay_ms, packets), new Hop(events, mbps, delay_ms, packets)};
}

}  // namespace

int main(int argc, char** argv) {
    const bool dumbbell = argc == 4 && !std::strcmp(argv[1], "dumbbell");
    if (!dumbbell && !(argc == 3 && !std::strcmp(argv[1], "link"))) {
        std::cerr << "usage: speed link T | dumbbell N T\n";
        return 2;
    }
    const int n = dumbbell ? std::atoi(argv[2]) : 1;
    const double seconds = std::atof(argv[argc - 1]);
    Packet::set_packet_size(PACKET);
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(seconds));
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    auto bottleneck = link(events, 1000, dumbbell ? 18 : 20, 5999);
    std::vector<Flow*> flows;
    for (int i = 0; i < n; i++) {
        Flow* flow = new Flow(events);
        std::vector<std::vector<Hop*>> way;
        if (dumbbell) way.push_back(link(events, 10000, 1, 99999));
        way.push_back(bottleneck);
        if (dumbbell) way.push_back(link(events, 10000, 1, 99999));
        for (size_t hop = 0; hop < way.size(); hop++) {
            way[hop][0]->extend(flow->there);
            way[way.size() - 1 - hop][1]->extend(flow->back);
        }
        const uint64_t share = 4000 / n < 2 ? 2 : 4000 / n;
        flow->start(timers, share, dumbbell ? timeFromSec(drand48()) : 0);
        flows.push_back(flow);
    }
    while (events.doNextEvent()) {
    }
    uint64_t bytes = 0;
    for (Flow* flow : flows) bytes += flow->sink._cumulative_ack;
    std::cout << "{\"T\":" << seconds << ",\"flows\":" << n << ",\"delivered\":" << bytes / PACKET << "}\n";
}

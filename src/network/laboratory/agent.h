// The program on each host of the laboratory: a readout or a node. It gets orders on stdin, one JSON object a line, and
// answers on stdout.
//
//   {"do": "hello"}                               {"version": 3}
//   {"do": "clock"}                               {"ns": N}                   steady clock of this host
//   {"do": "readout", "address": A, "port": P,
//    "tcp": "cubic"}                              {"port": P}                 answers requests from then on
//   {"do": "mark"}                                {}                          a readout's counters start at 0
//   {"do": "counters"}                            {"retransmits": N, ...}
//   {"do": "node", "tcp": "cubic",
//    "readouts": ["A:P", ...]}                    {}                          connected
//   {"do": "run", "start_ns": N, "node": I, ...}  lines of {"values": "latency_ns", "list": [N, ...]},
//                                                 then {"scheduled": N, ...}
//
// The answer to an order that fails is {"error": TEXT, "code": CODE, "next": TEXT}. The end of stdin ends the agent.
#pragma once

namespace rodeo::network::laboratory {

/// Serves stdin until its end. Returns the process's exit status.
int run_agent();

}  // namespace rodeo::network::laboratory

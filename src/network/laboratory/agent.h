// What runs on each host of the laboratory: a readout or a node, told what to do in lines on stdin, answering on stdout.
//
//   hello                                         ok version=1
//   clock                                         ok ns=N                     steady clock of this host
//   readout address=A port=P tcp=cubic            ok port=P                   from then on it answers requests
//   mark                                          ok                          a readout's counting starts anew
//   counters                                      ok retransmits=N ...
//   node tcp=cubic readouts=A:P,A:P,...           ok                          connected
//   run start_ns=N node=I ... (settings)          latency_ns=..., lateness_ns=... lines of values, then `done ...`
//
// Whatever fails is answered with `error code=CODE` and a sentence behind it. The end of stdin ends the agent.
#pragma once

namespace rodeo::network::laboratory {

/// Serves stdin until its end. Returns the process's exit status.
int run_agent();

}  // namespace rodeo::network::laboratory

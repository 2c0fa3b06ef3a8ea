// The counters of inputs that count losses: data missing, present but unreadable, or cut off.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/named_counters.h"

namespace rodeo::input {

/// True for the counters of this list, and for all that begin with "lost_" (as in plug-ins).
constexpr bool is_loss(std::string_view counter) {
  constexpr std::array<std::string_view, 23> kLosses{"card_links_down",
                                                     "card_lost_packets",
                                                     "sequence_gaps",
                                                     "bad_marker",
                                                     "bad_trailer",
                                                     "page_gaps",
                                                     "packet_gaps",
                                                     "bad_rdh",
                                                     "skipped_bytes",
                                                     "chunks_cut_off",
                                                     "triggers_cut_off",
                                                     "triggers_missed",
                                                     "cards_cut_off",
                                                     "damaged",
                                                     "oversize",
                                                     "network_lost",
                                                     "network_cut_chunks",
                                                     "network_bad_pages",
                                                     "network_cut_off",
                                                     "list_network_lost",
                                                     "list_network_cut_chunks",
                                                     "list_network_bad_pages",
                                                     "list_network_cut_off"};
  // Losses of routers: data that a router's readers gave up at the end. No later link count shows them, so they are counted
  // here.
  if (counter.starts_with("upstream_") && counter.ends_with("_not_taken")) return true;
  return counter.starts_with("lost_") || std::ranges::find(kLosses, counter) != kLosses.end();
}

/// Bytes that arrived at the input and were cut off delivered chunks.
inline std::uint64_t cut_bytes(const std::vector<NamedCounter>& counters) {
  return base::counter_value(counters, "cut_bytes") + base::counter_value(counters, "network_cut_bytes");
}

}  // namespace rodeo::input

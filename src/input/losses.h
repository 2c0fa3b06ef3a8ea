// Which counters of inputs say that data are missing, or were there and could not be read.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rodeo::input {

/// Those of this list, and all that begin with "lost_", as a plug-in's may.
constexpr bool is_loss(std::string_view counter) {
  constexpr std::array<std::string_view, 17> kLosses{"card_links_down",
                                                     "card_lost_packets",
                                                     "sequence_gaps",
                                                     "bad_marker",
                                                     "bad_trailer",
                                                     "packet_gaps",
                                                     "bad_rdh",
                                                     "skipped_bytes",
                                                     "chunks_cut_off",
                                                     "triggers_cut_off",
                                                     "triggers_missed",
                                                     "cards_cut_off",
                                                     "damaged",
                                                     "network_lost",
                                                     "network_cut_chunks",
                                                     "list_network_lost",
                                                     "list_network_cut_chunks"};
  return counter.starts_with("lost_") || std::ranges::find(kLosses, counter) != kLosses.end();
}

}  // namespace rodeo::input

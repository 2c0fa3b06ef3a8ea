// Which counters of inputs say that data are missing, or were there and could not be read.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rodeo::input {

constexpr bool is_loss(std::string_view counter) {
  constexpr std::array<std::string_view, 17> kLosses{
      "card_links_down", "card_lost_packets", "sequence_gaps", "lost_blocks",   "bad_marker",        "bad_trailer",
      "packet_gaps",     "lost_pages",        "bad_rdh",       "skipped_bytes", "chunks_cut_off",    "triggers_cut_off",
      "triggers_missed", "cards_cut_off",     "damaged",       "network_lost",  "network_cut_chunks"};
  return std::ranges::find(kLosses, counter) != kLosses.end();
}

}  // namespace rodeo::input

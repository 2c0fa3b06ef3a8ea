// Distributes the links over readers: a pure function of the input's links, their groups and the number of readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::router {

using ReaderLinks = std::vector<std::vector<Fid>>;  ///< the links of each reader, in the input's order

/// Makes one reader for each DMA channel of each card, in the order of the links. The links of a channel are a group
/// (DataInput::link_groups()) with the same detector and connector. With `readers` above 0, makes this number: divides the
/// links of a channel evenly, and gives no reader links of two channels. Errors: router.no_links; router.readers (fewer than
/// channels, or more than links).
Result<ReaderLinks> cut_into_readers(std::span<const Fid> links, std::span<const std::size_t> groups, std::uint32_t readers);

/// Returns the link of the trigger list of the first card. This link is virtual, not a fibre of any card.
Fid trigger_list_fid(std::span<const Fid> links);

}  // namespace rodeo::router

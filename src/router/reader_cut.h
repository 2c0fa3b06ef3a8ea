// Which links a reader has: a pure function of the input's links, their groups and the number of readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::router {

using ReaderLinks = std::vector<std::vector<Fid>>;  ///< of each reader, in the input's order

/// One reader for each DMA channel of each card - the links of a group (DataInput::link_groups()) that share detector and connector -, in the order in
/// which they come. `readers` of more than 0: so many, those of a channel with even shares of its links, and none with links of two channels. Errors:
/// router.no_links; router.readers (fewer than channels, or more than links).
Result<ReaderLinks> cut_into_readers(std::span<const Fid> links, std::span<const std::size_t> groups, std::uint32_t readers);

/// The link that the trigger's list of the first card goes by: virtual, and no fibre of any card.
Fid trigger_list_fid(std::span<const Fid> links);

}  // namespace rodeo::router

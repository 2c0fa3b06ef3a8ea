// Distributes the links over readers: a pure function of the input's links, their groups and the number of readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::router {

using ReaderLinks = std::vector<std::vector<Fid>>;  ///< of each reader, in the input's order

/// Makes one reader for each DMA channel of each card - the links of a group (DataInput::link_groups()) with the same
/// detector and connector -, in the order of the links. With `readers` above 0: this number; the links of a channel are
/// divided evenly, and no reader has links of two channels. Errors: router.no_links; router.readers (fewer than channels, or
/// more than links).
Result<ReaderLinks> cut_into_readers(std::span<const Fid> links, std::span<const std::size_t> groups, std::uint32_t readers);

/// The link of the trigger list of the first card: virtual, not a fibre of any card.
Fid trigger_list_fid(std::span<const Fid> links);

}  // namespace rodeo::router

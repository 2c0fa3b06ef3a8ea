// The name of a link to a front-end: the FID of the link with the direction bit set and, for a CRU, a protocol
// (docs/reference/protocols/front-ends.md).
#pragma once

#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::formats {

/// `message`: any bytes, on a FELIX link. The other protocols belong to a CRU; Rodeo defines the numbers.
enum class FrontEndProtocol : std::uint8_t { message, sca, swt, ic };

/// E-links of a FELIX link to the front-end's own chips: the GBTx, and its slow control adapter.
inline constexpr unsigned kIcElink = 62;
inline constexpr unsigned kEcElink = 63;

/// The link to the front-end of `link`, which may have either direction.
constexpr Fid to_front_end(Fid link) { return Fid{link.value | std::uint64_t{1} << 15}; }
constexpr Fid to_front_end(Fid link, FrontEndProtocol protocol) {
  constexpr std::uint64_t kProtocol = std::uint64_t{0x7f} << 8;
  return Fid{(to_front_end(link).value & ~kProtocol) | static_cast<std::uint64_t>(protocol) << 8};
}
/// The link on which that front-end sends to the host.
constexpr Fid to_host(Fid link) {
  return Fid{to_front_end(link, FrontEndProtocol::message).value & ~(std::uint64_t{1} << 15)};
}

}  // namespace rodeo::formats

// The cards of a router as ways to front-ends: which links they have, and how a message gets there.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "input/card_input.h"
#include "rodeo/ids.h"

namespace rodeo::router {

/// One PCI function of a card. One thread.
class FrontEndDevice {
 public:
  virtual ~FrontEndDevice() = default;

  /// Those that messages can be sent to; with the direction bit.
  virtual std::span<const Fid> links() const = 0;

  /// Gives the card a message for links()[link]. What the front-end answers at once, often nothing; no value: the card has no room now, ask again. An
  /// error is of this message: what it says cannot be, or nobody answers. Waits where a front-end has to answer: for each of the up to 128 frames or
  /// words of a message, up to 100 ms.
  virtual Result<std::optional<std::vector<std::byte>>> send(std::size_t link, std::span<const std::byte> message) = 0;

  /// Waits until the card has taken what it was given, for a second at most. Bytes that it has not.
  virtual std::size_t drain() { return 0; }
};

/// Opens FELIX and CRU cards beside whoever reads them. Their FIDs are those that the input `card` gives their links. Throws SetupError: no such card,
/// a card of another kind, a way to front-ends that has an owner.
std::vector<std::unique_ptr<FrontEndDevice>> open_front_ends(const input::CardInputSettings& cards);

}  // namespace rodeo::router

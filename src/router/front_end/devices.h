// The cards of a router as connections to front-ends: their links, and the transfer of messages.
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

  /// Links that accept messages. Their FIDs have the direction bit.
  virtual std::span<const Fid> links() const = 0;

  /// Passes a message for links()[link] to the card. Returns the immediate answer of the front-end, often empty. No value:
  /// the card has no room, try again. An error concerns this message: its contents are impossible, or the front-end does not
  /// answer. Blocks while a front-end must answer: up to 100 ms for each of the up to 128 frames or words of a message.
  virtual Result<std::optional<std::vector<std::byte>>> send(std::size_t link, std::span<const std::byte> message) = 0;

  /// Waits for at most a second until the card has taken all its data. Returns the number of bytes that are left.
  virtual std::size_t drain() { return 0; }

  /// Any thread may call it: from now on a wait for a silent card is short.
  virtual void hurry() {}
};

/// Opens FELIX and CRU cards, in parallel to their reader. FIDs are those of the input `card`. Throws SetupError if a card
/// is missing or of another kind, or if another process owns its connection to front-ends.
std::vector<std::unique_ptr<FrontEndDevice>> open_front_ends(const input::CardInputSettings& cards);

}  // namespace rodeo::router

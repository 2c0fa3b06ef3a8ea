// Reads the trigger's own list as far as a worker wants to know it: the list may be far ahead of the data, a window is finite.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "readout/sequence/trigger_book.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// One worker thread. What is not read yet stays in the input's memory.
class TriggerListReader {
 public:
  static constexpr std::uint32_t kBatch = 64;

  /// Both may be null: then there is nothing to read.
  TriggerListReader(DataStream* list, TriggerExtractor* extractor) : list_(list), extractor_(extractor) {}

  bool exists() const { return list_ != nullptr; }

  /// The next triggers, at most `most` and kBatch; none if the list holds no more for now. Valid until the next call.
  std::span<const ListedTrigger> read(std::uint32_t most);

 private:
  bool next_run();

  DataStream* const list_;
  TriggerExtractor* const extractor_;
  Page* page_ = nullptr;
  std::size_t run_ = 0;
  std::uint32_t at_ = 0;  // in the run
  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
  std::array<ListedTrigger, kBatch> read_{};
};

}  // namespace rodeo::readout

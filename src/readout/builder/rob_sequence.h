// The sequencer of one ROB and the trigger's own list, shared by the workers of a GBT builder. They ask it where a link does not go on as
// expected, and take turns.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "readout/builder/trigger_list_reader.h"
#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

struct RobSequence {
  RobSequence(const Sequencer::Settings& settings, DataStream* list_stream, TriggerExtractor* list_extractor)
      : sequencer(settings), list(list_stream, list_extractor) {}

  /// Reads what the list holds by now, as far as there is room behind `oldest`, the lowest number that some worker has still open. True if
  /// there was something. A peer that is at it is waited for: what follows may need what it reads.
  bool poll_list(std::uint64_t now, Sequence oldest) {
    if (!list.exists()) return false;
    const std::lock_guard reading(list_mutex);
    bool any = false;
    for (;;) {
      if (unread.empty()) unread = list.read(TriggerListReader::kBatch);
      if (unread.empty()) break;
      const std::lock_guard lock(mutex);
      std::size_t read = 0;
      while (read < unread.size() && sequencer.announce(unread[read], now, oldest)) ++read;
      unread = unread.subspan(read);
      any = any || read != 0;
      if (!unread.empty()) break;
    }
    if (!any) {
      const std::lock_guard lock(mutex);
      sequencer.settle_list(now);
    }
    return any;
  }

  std::mutex mutex;  ///< of the sequencer's functions; not to be held while anything is published
  Sequencer sequencer;
  std::vector<std::size_t> first_readers;  ///< of each worker, its readers in the sequencer are one after the other
  bool assembling = false;                 ///< the assembler knows the run's first number; with the mutex

 private:
  std::mutex list_mutex;  // taken before the other
  TriggerListReader list;
  std::span<const ListedTrigger> unread;
};

}  // namespace rodeo::readout

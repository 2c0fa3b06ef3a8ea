// The sequencer of one ROB and the trigger's own list, shared by the workers of a GBT builder. They ask it where a link does not go on as
// expected, and take turns.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "readout/builder/trigger_list.h"
#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

struct RobSequence {
  RobSequence(const Sequencer::Settings& settings, std::unique_ptr<TriggerList> trigger_list)
      : sequencer(settings), list_(std::move(trigger_list)) {}

  /// Reads what the list holds by now, as far as there is room behind `oldest`, the lowest number that some worker has still open. True if
  /// there was something. `needed`: what the list may have by now; else a peer that is at it is not waited for.
  bool poll_list(std::uint64_t now, Sequence oldest, bool needed) {
    std::unique_lock lock(mutex, std::defer_lock);
    if (needed)
      lock.lock();
    else if (!lock.try_lock())
      return false;
    bool any = false;
    for (bool more = true; more;) {
      const std::span<const ListedTrigger> unread = list_->unread(0);
      std::size_t read = 0;
      while (read < unread.size() && sequencer.announce(unread[read], now, oldest)) ++read;
      list_->take(0, read);
      any = any || read != 0;
      more = read != 0 && read == unread.size();
    }
    if (!any) sequencer.settle_list(now);
    return any;
  }

  /// This worker never began: nothing is to be read from its sources.
  void leave(std::size_t worker) {
    const std::lock_guard lock(mutex);
    for (std::size_t reader = first_readers[worker]; reader < first_readers[worker + 1]; ++reader)
      sequencer.reads_no_more(reader);
  }

  std::mutex mutex;  ///< of the sequencer's functions; not to be held while anything is published
  Sequencer sequencer;
  std::vector<std::size_t> first_readers;  ///< of each worker, its readers in the sequencer are one after the other
  bool assembling = false;                 ///< the assembler knows the run's first number; with the mutex

 private:
  const std::unique_ptr<TriggerList> list_;  // null: there is none
};

}  // namespace rodeo::readout

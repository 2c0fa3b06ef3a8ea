// The sequencer of one ROB and the trigger's own list. The workers of a GBT builder share them under a lock, and use them if
// a link does not continue as expected.
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

  /// Reads new entries of the list while the book has room behind `oldest`, the lowest number that a worker still has open.
  /// True if there were any. `needed`: the caller needs the entries, so it waits for a peer that is reading; otherwise it
  /// returns at once.
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
      list_->consume(0, read);
      any = any || read != 0;
      more = read != 0 && read == unread.size();
    }
    if (!any) sequencer.judge_overdue_entry(now);
    return any;
  }

  /// Says that this worker never started: its sources are not read.
  void set_never_started(std::size_t worker) {
    const std::lock_guard lock(mutex);
    for (std::size_t reader = first_readers[worker]; reader < first_readers[worker + 1]; ++reader)
      sequencer.set_reader_ended(reader);
  }

  std::mutex mutex;  ///< protects the sequencer's functions; never hold it while publishing
  Sequencer sequencer;
  std::vector<std::size_t> first_readers;  ///< first reader of each worker; the readers of one worker are consecutive
  bool assembling = false;                 ///< the assembler has the run's first number; needs the mutex

 private:
  const std::unique_ptr<TriggerList> list_;  // null if there is no list
};

}  // namespace rodeo::readout

// FragmentProcessor: runs a user's work on every fragment, then passes it on (software ROD paper, section VI.C: custom
// processing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/log.h"
#include "readout/consumer/fragment_copies.h"
#include "readout/consumer/queued_consumer.h"
#include "rodeo/plugin.h"

namespace rodeo::readout {

struct ProcessorSettings {
  QueueSettings queue = {};
  std::size_t max_payload_bytes = 64 * 1024;  ///< largest payload that can be copied
  std::size_t copies = 256;                   ///< copies that may exist between this consumer and the end of the list
};

/// One FragmentWork per thread. A work that only reads gets the fragment itself or, if it wants one contiguous piece, the
/// bytes in a scratch buffer. A work that writes gets the fragment itself if it needs no contiguous piece and the memory may
/// be written. Otherwise it gets a contiguous copy that replaces the fragment. An exception of a work flags its fragment as
/// corrupt.
class FragmentProcessor final : public QueuedConsumer {
 public:
  /// Makes the works at once, so a bad setting is found before the run. Throws the exceptions of `make_work`.
  FragmentProcessor(ProcessorSettings settings, const std::function<std::unique_ptr<FragmentWork>()>& make_work);
  ~FragmentProcessor() override;

  Status status() const override;

  static std::vector<Key> keys();
  /// `registry` makes the work that the parameters name; it must outlive the processor. The keys of the work are in the same
  /// table.
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const Registry& registry);

 private:
  class ProcessorWorker;
  std::unique_ptr<Worker> make_worker(unsigned index) override;

  const ProcessorSettings settings_;
  std::vector<std::unique_ptr<FragmentWork>> works_;
  std::unique_ptr<FragmentCopies> copies_;              // set only for works that write
  std::vector<std::unique_ptr<ProcessorWorker>> made_;  // works before start() hands them to the base class
  std::vector<const ProcessorWorker*> workers_;         // the same works, for status()
  base::LogThrottle log_;
};

}  // namespace rodeo::readout

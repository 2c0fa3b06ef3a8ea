// InternalDataGenerator: a DataInput that makes its own triggers and data in its own thread (software ROD paper, section V).
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "input/generator.h"
#include "input/offered_links.h"
#include "rodeo/input.h"
#include "rodeo/plugin.h"

namespace rodeo::input {

/// `type = "generator"`. Its thread "rodeo-gen" makes pages of provable chunks in a bounded pool. A trigger that is due
/// while the pool is full is vetoed and counted, so a readout that is too slow has dead time and never loss. Settings:
/// generator_keys().
class InternalDataGenerator final : public DataInput {
 public:
  /// Throws SetupError.
  explicit InternalDataGenerator(GeneratorSettings settings);
  ~InternalDataGenerator() override;

  std::span<const Fid> links() const override { return generator_.settings().links; }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;
  std::vector<NamedCounter> counters() const override;
  double cpu_seconds() const override { return cpu_.seconds(); }

 private:
  void run();

  Generator generator_;
  OfferedLinks links_;
  std::atomic<std::uint64_t> stop_ns_{0};  // time of stop(); 0: not stopped
  std::atomic<bool> abandoned_{false};
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::input

// A selection that a user wrote in Python (rodeo.select). It has a process of its own, so its crash harms nothing else.
//
//     thread of the node          socket: one request, one answer           process: python -m rodeo.selection.worker FILE
//       select(event) ──────────► id, sizes ──────────────────────────────► user's function
//       copies the ROBs ─► shared memory ─────────────────────────────────► memoryviews of it
//                      ◄────────── JSON: verdict, streams ◄──────────────── what it returned, or raised
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/fd_socket.h"
#include "rodeo/parameters.h"
#include "rodeo/selection.h"
#include "settings/json.h"

namespace rodeo::farm {

/// One thread, the one that makes the object: the process ends with that thread.
class PythonSelection final : public EventSelection {
 public:
  /// Starts the process and waits until it has read the file. Throws SetupError: farm.python, with the message of Python.
  explicit PythonSelection(const Parameters& parameters);
  ~PythonSelection() override;

  std::vector<SourceId> first_robs() const override { return first_robs_; }
  /// Throws std::runtime_error if the function raised an exception, the process ended, or the answer was late. In the second
  /// and third case, restarts the process.
  Selected select(const WholeEvent& event) override;
  std::vector<NamedCounter> counters() const override;

  static std::vector<Key> keys();

 private:
  Result<void> start();
  void stop();
  Result<settings::Json> read_answer(std::chrono::nanoseconds patience);
  void write_event(const WholeEvent& event);
  [[noreturn]] void restart(const std::string& why);

  struct Keys;
  std::unique_ptr<Keys> keys_;
  base::ChildProcess process_;
  base::UniqueFd socket_;
  base::UniqueFd memory_;
  std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::string received_;
  std::array<std::byte, 40> request_{};
  std::vector<SourceId> first_robs_;
  struct Counts;
  std::unique_ptr<Counts> counts_;
};

}  // namespace rodeo::farm

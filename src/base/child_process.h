// A process that this one runs for itself: started, waited for, and gone at the latest when its owner is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rodeo::base {

/// Move only; its end kills the process if it still runs. One thread.
class ChildProcess {
 public:
  struct Settings {
    std::vector<std::string> command;           ///< found in PATH
    std::vector<std::string> environment = {};  ///< NAME=VALUE, before what it has from us
    int in = -1;                                ///< descriptors that it has as stdin, stdout and stderr; -1: ours
    int out = -1;
    int err = -1;
    /// What it gets when the thread that started it ends, however that happens; 0: nothing.
    int when_we_end = SIGKILL;
    /// What it does before it becomes the program: system calls only. False: it gives up, with errno.
    std::function<bool()> first = {};
  };

  /// Waits until it is the program. Errors base.process and base.resources, with the system's reason: no process could be made, or it could not become
  /// the program.
  static Result<ChildProcess> start(const Settings& settings);
  /// A copy of this process that does `work` and ends: with 0, or with 1 if that throws. It ends with the thread that made it. Error base.process.
  static Result<ChildProcess> fork(const std::function<void()>& work);

  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }  ///< -1: it has ended
  void signal(int number) const;
  /// Its exit status, 128 + N if signal N ended it; nothing if it still runs after so long.
  std::optional<int> wait(std::chrono::milliseconds patience);
  /// The same, however long it takes.
  int wait();

 private:
  bool reap(int options);

  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace rodeo::base

// A child process: started, waited for, and ended at the latest with its owner.
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

/// Move only; the destructor kills the process if it still runs. One thread.
class ChildProcess {
 public:
  struct Settings {
    std::vector<std::string> command;           ///< found in PATH
    std::vector<std::string> environment = {};  ///< NAME=VALUE, put before our own environment
    int in = -1;  ///< descriptors for the child's stdin, stdout and stderr; -1: those of this process
    int out = -1;
    int err = -1;
    /// The signal that the child gets when the thread that started it ends for any reason; 0: none.
    int when_we_end = SIGKILL;
    /// Called in the child before exec: system calls only. False: the start fails, with errno.
    std::function<bool()> first = {};
  };

  /// Waits until exec has succeeded. Errors base.process and base.resources, with the system's reason: the process cannot be
  /// made, or the program cannot be executed.
  static Result<ChildProcess> start(const Settings& settings);
  /// Forks a copy of this process that runs `work` and exits: with 0, or with 1 if `work` throws. It ends with the thread
  /// that made it. Error base.process.
  static Result<ChildProcess> fork(const std::function<void()>& work);

  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }  ///< -1: the process has ended
  void signal(int number) const;
  /// The exit status, or 128 + N if signal N ended the child; nothing if the child still runs after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);
  /// wait() without a time limit.
  int wait();

 private:
  bool reap(int options);

  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace rodeo::base

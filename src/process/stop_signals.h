// Ctrl-C, SIGTERM and SIGHUP as requests: the first asks a run to end in order, the third aborts it. The second changes
// nothing: timeout(1) and service managers send their signal to a process and, at once, to its group.
#pragma once

namespace rodeo::process {

/// Signals are counted and do not end the process while an object lives; ignored signals stay ignored. For one thread.
/// Objects may nest and share the count: the code that writes a report after a run keeps its own object until the report is
/// written.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();

  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool stop_requested() const { return count() >= 1; }
  bool stop_requested_again() const { return count() >= 2; }
  bool abort_requested() const { return count() >= 3; }

 private:
  int count() const;
};

/// While an object lives, a signal ends the process again, although a StopSignals lives, too.
class DefaultSignals {
 public:
  DefaultSignals();
  ~DefaultSignals();

  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;
};

/// For processes that have a run: call once at the start. A closed stderr or stdout (the `tee` behind a pipe ends by the
/// same Ctrl-C) or a file at its size limit then does not end the process (SIGPIPE, SIGXFSZ). The write fails, which is
/// ignored or is an error of that file.
void ignore_write_signals();

}  // namespace rodeo::process

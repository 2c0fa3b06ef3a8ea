// Ctrl-C, SIGTERM and SIGHUP as requests: the first asks a run to end in order, the third not to wait for it. The second changes nothing:
// timeout(1) and service managers send their signal to a process and, at once, to its group.
#pragma once

namespace rodeo::process {

/// While one of these lives, the signals are counted instead of ending the process; those that were ignored before stay ignored. One thread. Within the life of one there may be others, which know
/// what it has counted: who writes a report when a run is over has one until it is written.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();

  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool stop_requested() const { return count() >= 1; }
  bool asked_again() const { return count() >= 2; }
  bool abort_requested() const { return count() >= 3; }

 private:
  int count() const;
};

/// For processes that have a run, once, at their start: who reads what they say may end (the `tee` behind a pipe, by the same Ctrl-C), and a file may
/// come to the limit of its size. Neither ends the process any more (SIGPIPE, SIGXFSZ): the write fails, which is nothing, or an error of its file.
void outlive_listeners();

}  // namespace rodeo::process
